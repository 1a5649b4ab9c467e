/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids: creation, migration, and the broker's messages about them. */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "rdmacm/last_event.h"
#include "rdmacm/object.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/token.h"

/* Stores the type of the queue pairs of a port space.  Returns false if the
 * port space is unknown. */
static bool type_of(enum rdma_port_space ps, enum ibv_qp_type *type)
{
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		*type = IBV_QPT_RC;
		return true;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		*type = IBV_QPT_UD;
		return true;
	}
	return false;
}

/* Returns why r_id_new or r_event_new has failed with errno err, and what to
 * do. */
static const char *why_no_id(int err)
{
	return err == ENOMEM
		       ? "no memory is left; free some, or raise ulimit -v and "
			 "-d"
		       : "the kernel gives no random numbers, which adverb "
			 "needs for the first PSN: allow getrandom(2) in the "
			 "sandbox, or make /dev/urandom readable there";
}

/* Prints why r_id_new has failed with errno err.  Destroys the channel `own`,
 * which was made for the id; NULL: there is none.  Returns -1 and errno. */
static int refuse_id(struct rdma_event_channel *own, int err)
{
	if (own)
		rdma_destroy_event_channel(own);
	return r_fail(err, "rdma_create_id: no id can be made: %s",
		      why_no_id(err));
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space ps)
{
	struct rdma_event_channel *own = NULL;
	enum ibv_qp_type type;
	struct r_id *made;

	if (!type_of(ps, &type))
		return r_fail(EINVAL,
			      "rdma_create_id: the port space 0x%x is unknown; "
			      "use RDMA_PS_TCP, _UDP, _IB or _IPOIB",
			      (unsigned)ps);
	if (r_devices())
		return -1;
	if (!channel) {
		own = rdma_create_event_channel();
		if (!own)
			return -1;
		channel = own;
	}
	made = r_id_new(channel, context, ps, type);
	if (!made)
		return refuse_id(own, errno);
	made->is_sync = own != NULL;
	*id = &made->base;
	return 0;
}

/* Frees an event that the program will not get.  For a connection request, also
 * frees the new id, which the program does not know. */
static void forget_event(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);
	bool is_request = e->base.event == RDMA_CM_EVENT_CONNECT_REQUEST;

	r_event_free(e);
	if (!is_request)
		return;
	r_channel_move(id, NULL);
	r_iw_forget(id);
	r_release(id);
	free(id);
}

void r_channel_move(struct r_id *id, struct r_channel *to)
{
	struct r_channel *from = r_channel(id->base.channel);
	struct list moved = {&moved, &moved};

	r_last_event_end(&id->base);
	/* The channel may have thousands of events, so the search ends with the
	 * id's last one. */
	list_for_each_safe (n, &from->events) {
		if (!id->queued)
			break;
		if (r_event_owner(r_event_of(n)) != &id->base)
			continue;
		r_unqueue(r_event_of(n));
		list_push_tail(&moved, n);
		r_take_back_token(from);
	}
	if (to)
		id->base.channel = &to->base;
	list_for_each_safe (n, &moved) {
		struct r_event *e = r_event_of(n);

		if (!to) {
			forget_event(e);
			continue;
		}
		r_post(e);
		/* The id of a connection request moves with the event. */
		if (e->base.listen_id)
			r_channel_move(r_id(e->base.id), to);
	}
}

void r_bind_message(const struct r_id *id, const struct sockaddr *addr,
		    struct cmproto *m)
{
	m->at.space = (uint16_t)id->base.ps;
	m->at.local_port = r_addr_port(addr);
	m->may_share = id->options.may_share;
	m->is_datagram = id->base.qp_type == IBV_QPT_UD;
	m->is_ib = r_ib_is_used();
	m->is_ip = r_ib_is_ip(addr);
	if (r_addr_is_ib(addr) && r_addr_space(addr))
		m->at.space = (uint16_t)r_addr_space(addr);
	if (!r_addr_is_open(addr) || id->device) {
		r_addr_ip(addr, m->at.local);
		return;
	}
	m->only_own = r_addr_is_loopback(addr);
	if (r_addr_is_ib(addr)) {
		m->any_v6 = true; /* a GID has the form of an IPv6 address */
		return;
	}
	m->any_v4 = addr->sa_family == AF_INET || !id->options.is_family_only;
	m->any_v6 = addr->sa_family == AF_INET6;
}

void r_set_bound(struct r_id *id, const struct sockaddr *addr, uint16_t port)
{
	struct rdma_addr *a = &id->base.route.addr;

	if (addr != &a->src_addr)
		memcpy(&a->src_storage, addr, r_addr_size(addr));
	if (r_addr_is_ib(addr) && !r_addr_space(&a->src_addr))
		r_addr_set_service(&a->src_addr, (uint64_t)id->base.ps, port);
	r_addr_set_port(&a->src_addr, port);
	memcpy(&a->addr.ibaddr.sgid, id->path.local, 16);
	if (r_addr_is_ib(addr))
		a->addr.ibaddr.pkey = htobe16(r_addr_pkey(&a->src_addr));
	else if (id->path.pkey)
		a->addr.ibaddr.pkey = htobe16(id->path.pkey);
}

void r_id_resolved(struct r_id *id, int err)
{
	struct r_event *e = r_event_sure(id,
					 err ? RDMA_CM_EVENT_ADDR_ERROR
					     : RDMA_CM_EVENT_ADDR_RESOLVED,
					 err);

	id->state.has_destination = id->state.wants_route = !err;
	if (e)
		r_post(e);
}

void r_id_found(struct r_id *id, int err)
{
	if (err)
		id->state.resolve_err = err;
	id->state.is_resolving = false;
	/* While is_binding is set, r_id_bound posts the event later. */
	if (!id->state.is_binding)
		r_id_resolved(id, id->state.resolve_err);
}

void r_id_bound(struct r_id *id, const struct cmproto *m)
{
	if (!m->err) {
		r_link(id, m->new_id);
		r_set_bound(id, &id->base.route.addr.src_addr,
			    m->at.local_port);
	}
	if (!id->state.is_binding)
		return; /* r_bind waits for the answer */
	if (m->err == -EACCES)
		r_say("rdma_resolve_addr: the source port cannot be "
		      "bound: " R_LOW_PORT);
	id->state.is_binding = false;
	if (m->err)
		id->state.resolve_err = m->err;
	if (!id->state.is_resolving)
		r_id_resolved(id, id->state.resolve_err);
}

static void destroy_channel(void *channel)
{
	rdma_destroy_event_channel(channel);
}

/* Waits as r_await_acks does.  own: the channel that was made for the id; NULL:
 * there is none.  If the thread is cancelled in the wait, destroys the channel.
 */
static void await_acks_with(const struct r_id *id,
			    struct rdma_event_channel *own)
{
	if (!own) {
		r_await_acks(id, "rdma_migrate_id");
		return;
	}
	pthread_cleanup_push(destroy_channel, own);
	r_await_acks(id, "rdma_migrate_id");
	pthread_cleanup_pop(0);
}

int rdma_migrate_id(struct rdma_cm_id *base, struct rdma_event_channel *channel)
{
	struct r_id *id = r_id(base);
	struct rdma_event_channel *old = base->channel;
	bool was_sync = id->is_sync, becomes_sync = !channel;

	if (was_sync && !channel)
		return r_fail(EINVAL,
			      "rdma_migrate_id: the id is already synchronous; "
			      "pass an event channel");
	if (!channel)
		channel = rdma_create_event_channel();
	if (!channel)
		return -1;
	if (base->event) {
		rdma_ack_cm_event(base->event);
		base->event = NULL;
	}
	r_take();
	await_acks_with(id, becomes_sync ? channel : NULL);
	r_channel_move(id, r_channel(channel));
	base->channel = channel;
	id->is_sync = becomes_sync;
	r_give();
	if (was_sync)
		rdma_destroy_event_channel(old);
	return 0;
}

/* Returns the port in network order, or 0 for an id without an address. */
static __be16 port_of(const struct sockaddr *addr)
{
	return r_addr_is_known(addr) ? htons(r_addr_port(addr)) : 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}

/* Sets the addresses of a connection request's id on a host of a fabric, from
 * the IP addresses that the request has in its private data. */
static void set_ips(struct r_id *id, const struct r_id *listener,
		    const struct cmproto *m, const struct cmmsg_ip *ip)
{
	struct rdma_addr *a = &id->base.route.addr;

	id->path.ib = m->path;
	id->path.alternate = m->alternate;
	r_addr_make(&a->src_addr, ip->dst, m->at.local_port);
	r_addr_make(&a->dst_addr, ip->src, ip->src_port);
	a->addr.ibaddr.pkey = listener->base.route.addr.addr.ibaddr.pkey;
	if (m->path.pkey)
		a->addr.ibaddr.pkey = htobe16(m->path.pkey);
}

/* Sets the addresses of the id of a connection request. */
static void set_addresses(struct r_id *id, const struct r_id *listener,
			  const struct cmproto *m)
{
	const struct sockaddr *at = &listener->base.route.addr.src_addr;
	struct rdma_addr *a = &id->base.route.addr;
	uint16_t pkey;

	if (!r_addr_is_ib(at)) {
		r_addr_make(&a->src_addr, m->at.local, m->at.local_port);
		r_addr_make(&a->dst_addr, m->at.peer, m->at.peer_port);
		return;
	}
	id->path.ib = m->path;
	id->path.alternate = m->alternate;
	pkey = m->path.pkey ? m->path.pkey : r_addr_pkey(at);
	r_addr_make_ib(&a->src_addr, m->at.local, r_addr_space(at),
		       m->at.local_port, pkey);
	/* No message of the CM tells the peer's service ID. */
	r_addr_make_ib(&a->dst_addr, m->at.peer, 0, m->at.peer_port, pkey);
	a->addr.ibaddr.pkey = htobe16(pkey);
}

/* Says that the program does not get a connection request.  err: the errno of
 * r_id_new or r_event_new. */
static void say_refused(const struct r_id *listener, int err)
{
	char text[R_ADDR_TEXT];

	r_say("rdma_listen: a connection request to %s is refused, since no id "
	      "can be made for the request: %s",
	      r_addr_text(&listener->base.route.addr.src_addr, text),
	      why_no_id(err));
}

/* Creates the id of a connection request, and posts the event to the listener's
 * channel.  ip: the addresses in the request; NULL: those of *m count. */
static void create_incoming_id(struct r_id *listener, const struct cmproto *m,
			       const struct cmmsg_ip *ip)
{
	struct r_id *id =
		r_id_new(listener->base.channel, listener->base.context,
			 listener->base.ps, listener->base.qp_type);
	struct r_event *e =
		id ? r_event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;

	if (!e) {
		say_refused(listener, errno);
		free(id);
		r_tell(CMPROTO_RELEASE, m->new_id);
		return;
	}
	id->state.is_passive = true;
	id->remote = *m;
	memcpy(id->note, m->note, sizeof(id->note));
	/* If the listener has no traffic class, the request's is used. */
	id->options.tos = listener->options.tos ? listener->options.tos
						: m->qp.traffic_class;
	id->options.ack_timeout = listener->options.ack_timeout;
	memcpy(id->path.local, m->at.local, 16);
	memcpy(id->path.peer, m->at.peer, 16);
	if (ip)
		set_ips(id, listener, m, ip);
	else
		set_addresses(id, listener, m);
	memcpy(&id->base.route.addr.addr.ibaddr.sgid, m->at.local, 16);
	memcpy(&id->base.route.addr.addr.ibaddr.dgid, m->at.peer, 16);
	r_link(id, m->new_id);
	e->message = *m;
	e->base.listen_id = &listener->base;
	r_last_event_add_request(e);
}

/* Handles a connection request to a listener. */
static void take_request(struct r_id *listener, const struct cmproto *m)
{
	struct cmproto inner = *m;
	struct cmmsg_ip ip;

	if (!r_ib_is_ip(&listener->base.route.addr.src_addr))
		create_incoming_id(listener, m, NULL);
	else if (r_ib_take_header(&inner, &ip))
		create_incoming_id(listener, &inner, &ip);
	else
		r_tell(CMPROTO_RELEASE, m->new_id);
}

/* Tells the user why a connection has ended or was not established, as far as
 * the event m of the broker says so. */
static void explain_end(const struct r_id *id, const struct cmproto *m)
{
	const struct sockaddr *to = &id->base.route.addr.dst_addr;
	char text[R_ADDR_TEXT];

	r_addr_text(to, text);
	if (m->event == CMPROTO_RESPONSE &&
	    id->path.alternate.path.remote_lid && m->alternate.failover)
		r_say("rdma_connect: the peer at %s does not use the alternate "
		      "path (Failover Accepted %u of IBTA 12.6.8), so the "
		      "connection has one path",
		      text, m->alternate.failover);
	if (m->event == CMPROTO_DISCONNECTED && m->status == -ETIMEDOUT)
		r_say("rdma_disconnect: the program at %s has not answered the "
		      "disconnect request: the program reads no events of "
		      "rdma_cm, or cannot be reached any more",
		      text);
	/* Only the active side is told why a connection is not established. */
	if (id->state.is_passive)
		return;
	if (m->event == CMPROTO_UNREACHABLE && m->status == -ETIMEDOUT &&
	    r_is_ib(id))
		r_say("rdma_connect: UNREACHABLE: no program at %s%s answers "
		      "connection management; start the server on that host "
		      "first, and check that its port is active (ibv_devinfo)",
		      r_addr_is_ib(to) ? "the GID " : "", text);
	else if (m->event == CMPROTO_UNREACHABLE && m->status == -ETIMEDOUT)
		r_say("rdma_connect: UNREACHABLE: no program at %s answers "
		      "connection management on UDP port 4791; start the "
		      "server on that host first, and check the address, the "
		      "route and the firewall",
		      text);
	else if (m->event == CMPROTO_UNREACHABLE)
		r_say("rdma_connect: UNREACHABLE: %s refuses to resolve the "
		      "service (SIDR status %d; 1: no program listens, 2: the "
		      "program rejects the request); start the server first, "
		      "or check the port",
		      text, m->status);
	else if (m->event == CMPROTO_REJECTED && m->status == 8)
		r_say("rdma_connect: REJECTED: no program listens at %s "
		      "(reason 8); start the server first, or check the port",
		      text);
	else if (m->event == CMPROTO_REJECTED && m->status == R_REJ_CONSUMER)
		r_say("rdma_connect: REJECTED: the program at %s rejects the "
		      "connection (reason 28)",
		      text);
	else if (m->event == CMPROTO_REJECTED && !m->status)
		r_say("rdma_connect: REJECTED: the program at %s has begun "
		      "another connection with the queue pair by which it "
		      "accepted this one; connect again",
		      text);
	else if (m->event == CMPROTO_REJECTED)
		r_say("rdma_connect: REJECTED by %s: reason %d of IBTA 12.6.7.2 "
		      "(3: the user who listens has all the connections that "
		      "the %s allows; 4: the peer has waited too long; 10: "
		      "the peer still has an older connection of this queue "
		      "pair's number; connect again)",
		      text, m->status, r_ib_server());
}

/*
 * Called when the id's conversation ends or changes, or the device is gone.  If
 * the program has neither accepted nor rejected the connection request, the
 * request counts as withdrawn from now on, and the function returns true.  As
 * with the kernel, rdma_accept then fails, and no event is posted: the id's
 * context is still the listener's, so the program could not tell to which id
 * the event belongs.
 */
static bool withdraw_id(struct r_id *id)
{
	id->state.is_withdrawn |= id->state.is_passive && !id->state.is_decided;
	return id->state.is_withdrawn;
}

/* Posts DISCONNECTED if the connection was established, else the event of this
 * type.  Posts nothing if the program has taken DISCONNECTED, or if the request
 * is withdrawn. */
static void post_end(struct r_id *id, enum rdma_cm_event_type type, int status)
{
	struct r_event *e;

	if (id->state.is_disconnected || withdraw_id(id))
		return;
	e = id->state.is_up ? r_event_sure(id, RDMA_CM_EVENT_DISCONNECTED, 0)
			    : r_event_sure(id, type, status);
	if (e)
		r_post(e);
}

void r_post_removed(struct r_id *id)
{
	struct r_event *e = NULL;

	if (!withdraw_id(id))
		e = r_event_sure(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	if (e)
		r_post(e);
}

void r_post_lost(struct r_id *id)
{
	memset(id->note, 0, sizeof(id->note));
	post_end(id, RDMA_CM_EVENT_UNREACHABLE, -ECONNRESET);
}

void r_post_failed(struct r_id *id, int err)
{
	r_say("rdma_cm: a request to the %s has failed: %s", r_ib_server(),
	      r_reason(-err));
	post_end(id, RDMA_CM_EVENT_CONNECT_ERROR, err);
}

void r_id_message(struct r_id *id, const struct cmproto *m)
{
	static const enum rdma_cm_event_type types[] = {
		[CMPROTO_REQUEST] = RDMA_CM_EVENT_CONNECT_REQUEST,
		[CMPROTO_RESPONSE] = RDMA_CM_EVENT_CONNECT_RESPONSE,
		[CMPROTO_ESTABLISHED] = RDMA_CM_EVENT_ESTABLISHED,
		[CMPROTO_REJECTED] = RDMA_CM_EVENT_REJECTED,
		[CMPROTO_UNREACHABLE] = RDMA_CM_EVENT_UNREACHABLE,
		[CMPROTO_DISCONNECTED] = RDMA_CM_EVENT_DISCONNECTED,
		[CMPROTO_TIMEWAIT_EXIT] = RDMA_CM_EVENT_TIMEWAIT_EXIT,
		[CMPROTO_RESOLVED] = RDMA_CM_EVENT_ESTABLISHED,
	};
	struct r_event *e;

	if (m->event == CMPROTO_REQUEST) {
		if (m->new_id)
			take_request(id, m);
		return;
	}
	if (m->event > CMPROTO_RESOLVED)
		return;
	memcpy(id->note, m->note, sizeof(id->note));
	if (withdraw_id(id))
		return;
	if (m->event == CMPROTO_RESPONSE)
		id->remote = *m;
	explain_end(id, m);
	e = r_event_sure(id, types[m->event], m->status);
	if (!e)
		return;
	e->message = *m;
	if (m->event == CMPROTO_DISCONNECTED)
		r_last_event_add(e);
	else
		r_post(e);
}
