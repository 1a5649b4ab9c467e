/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels and their events.  A channel's descriptor is an eventfd in
 * semaphore mode with one token for each event, so it is readable exactly when
 * rdma_get_cm_event does not block.
 *
 * rdma_get_cm_event does the work that an event causes, such as modifying the
 * queue pair, in the program's thread, as rdma-core's librdmacm does.
 */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "rdmacm/newer.h"
#include "rdmacm/object.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/token.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define KEPT	       64 /* destroyed channels whose memory is kept */
#define REJ_REMOTE_GID 12 /* IBTA 12.6.7.2: the GID is refused */

static struct r_event *event_of(struct list *node)
{
	return CONTAINER_OF(node, struct r_event, link);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct r_channel *c;

	/* Without devices the call fails here already, as with the kernel: some
	 * programs crash if their first rdma_create_id fails (cmtime frees its
	 * memory twice). */
	if (r_devices())
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	list_init(&c->events);
	c->base.fd =
		fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC));
	if (c->base.fd < 0) {
		free(c);
		return NULL;
	}
	return &c->base;
}

/*
 * Programs such as rping destroy a channel while another thread of theirs waits
 * on the channel, and then end.  So the memory is freed only after KEPT more
 * channels have been destroyed.
 */
void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	static struct r_channel *kept[KEPT];
	static unsigned next;
	struct r_channel *c = r_channel(channel), *oldest;
	int fd;

	r_take();
	fd = channel->fd;
	/* Set before the close: when a read(2) of another thread has failed
	 * with EBADF, wait_if_destroyed must find -1. */
	channel->fd = -1;
	fd_identity_close(fd);
	oldest = kept[next % KEPT];
	kept[next++ % KEPT] = c;
	r_give();
	free(oldest);
}

static void fill_conn(struct rdma_conn_param *p, const struct cmproto *m)
{
	/* The peer's initiator depth is this side's responder resources. */
	p->responder_resources = m->qp.initiator_depth;
	p->initiator_depth = m->qp.responder_resources;
	p->flow_control = m->qp.flow_control;
	p->retry_count = m->qp.retry_count;
	p->rnr_retry_count = m->qp.rnr_retry;
	p->srq = m->qp.has_srq;
	p->qp_num = m->qp.qpn;
}

static void fill_ud(const struct r_id *id, struct rdma_ud_param *p,
		    const struct cmproto *m)
{
	p->qp_num = m->qp.qpn;
	p->qkey = m->qp.qkey;
	if (r_is_ib(id)) {
		r_ib_fill_av(id, &p->ah_attr);
		return;
	}
	p->ah_attr.is_global = 1;
	p->ah_attr.port_num = id->base.port_num;
	p->ah_attr.grh.sgid_index = id->path.sgid_index;
	p->ah_attr.grh.hop_limit = 64;
	p->ah_attr.grh.traffic_class = id->options.tos;
	memcpy(&p->ah_attr.grh.dgid, id->path.peer, 16);
}

struct r_event *r_event_new(struct r_id *id, enum rdma_cm_event_type type,
			    int status)
{
	struct r_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	list_init(&e->link);
	e->base.id = &id->base;
	e->base.event = type;
	e->base.status = status;
	return e;
}

/* Returns the id on whose channel the event is: the listener of a connection
 * request, else the event's id. */
static const struct rdma_cm_id *event_owner(const struct r_event *e)
{
	return e->base.listen_id ? e->base.listen_id : e->base.id;
}

void r_post(struct r_event *e)
{
	struct r_channel *c = r_channel(event_owner(e)->channel);

	list_push_tail(&c->events, &e->link);
	token_put(c->base.fd);
}

int r_post_local(struct r_id *id, enum rdma_cm_event_type type, int status)
{
	struct r_event *e = r_event_new(id, type, status);

	if (!e)
		return r_fail(ENOMEM,
			      "rdma_cm: no memory is left for an event");
	r_take();
	r_post(e);
	r_give();
	return 0;
}

/* Frees an event that the program will not get.  For a connection request, also
 * frees the new id, which the program does not know. */
static void forget_event(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);

	if (e->base.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		r_channel_move(id, NULL);
		r_iw_forget(id);
		r_release(id);
		free(id);
	}
	free(e);
}

void r_channel_move(struct r_id *id, struct r_channel *to)
{
	struct r_channel *from = r_channel(id->base.channel);
	struct list moved = {&moved, &moved};

	list_for_each_safe (n, &from->events) {
		if (event_owner(event_of(n)) != &id->base)
			continue;
		list_remove(n);
		list_push_tail(&moved, n);
		token_take_back(from->base.fd);
	}
	if (to)
		id->base.channel = &to->base;
	list_for_each_safe (n, &moved) {
		struct r_event *e = event_of(n);

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

void r_forget_join(const struct r_id *id, const struct r_multicast *m)
{
	struct r_channel *c = r_channel(id->base.channel);

	list_for_each_safe (n, &c->events) {
		if (event_of(n)->multicast != m)
			continue;
		list_remove(n);
		token_take_back(c->base.fd);
		free(event_of(n));
	}
}

/* Returns whether the event is a connection request to an address of this host
 * that no device has, such as 127.0.0.2: adverb cannot send from such an
 * address.  If a device has the address, that device becomes the id's. */
static bool is_for_no_device(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);

	if (e->base.event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return false;
	id->device = r_device_find(id->path.local, id->iw ? R_IWARP : R_ROCE,
				   &id->path);
	return !id->device;
}

/* Tells the user that the peer may send longer packets than this interface
 * receives: the reply has no field that could tell the peer. */
static void say_small_mtu(const struct r_id *id, const struct cmproto *m)
{
	char text[R_ADDR_TEXT];

	r_say("rdma_get_cm_event: the peer at %s asks for packets of %u bytes "
	      "of data, and this interface receives at most %u: longer packets "
	      "of the peer are lost; make the MTU of both interfaces equal (ip "
	      "link set DEV mtu N)",
	      r_addr_text(&id->base.route.addr.dst_addr, text),
	      128u << m->qp.mtu, 128u << id->path.mtu);
}

/* Sets the id's depths to those of the peer's request, as far as the device
 * allows.  rdma_accept may reduce them later. */
static void take_depths(struct r_id *id, const struct cmproto_qp *peer)
{
	const struct r_device *d = id->device;

	id->own.responder_resources =
		bits_min_u8(peer->initiator_depth, d->max_responder);
	id->own.initiator_depth =
		bits_min_u8(peer->responder_resources, d->max_initiator);
}

static void take_request(const struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);

	if (id->path.mtu > e->message.qp.mtu && e->message.qp.mtu)
		id->path.mtu = e->message.qp.mtu;
	else if (id->path.mtu < e->message.qp.mtu &&
		 e->message.qp.mtu <= IBV_MTU_4096)
		say_small_mtu(id, &e->message);
	take_depths(id, &e->message.qp);
	r_take();
	r_tell(CMPROTO_TAKEN, id->handle);
	r_give();
}

static void take_stream_request(struct r_id *id)
{
	take_depths(id, &id->remote.qp);
	r_iw_taken(id);
}

/*
 * Completes the id of a connection request, in the program's thread.  Returns
 * false and errno if no event channel can be created for the id.
 */
static bool serve_request(struct r_event *e)
{
	struct r_id *listener = r_id(e->base.listen_id);
	struct r_id *id = r_id(e->base.id);

	r_device_use(id, id->device);
	if (id->iw)
		take_stream_request(id);
	else
		take_request(e);
	return !listener->is_sync || !rdma_migrate_id(&id->base, NULL);
}

/* Handles the peer's reply (REP) on the active side: moves the id's queue pair
 * to RTS, and then sends the confirmation (RTU).  If the id has no queue pair,
 * the program moves its own to RTS, and sends the RTU by rdma_establish. */
static void serve_response(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);
	struct cmproto no = {.status = R_REJ_CONSUMER}, yes = {0};
	int err;

	if (!id->base.qp)
		return;
	if (!r_qp_connect(id)) {
		err = r_request(id, &yes, CMPROTO_ESTABLISH);
		e->base.event = RDMA_CM_EVENT_ESTABLISHED;
		if (!err)
			return;
		e->base.status = err;
	} else {
		e->base.status = -errno;
		r_call(id, &no, CMPROTO_REJECT);
	}
	e->base.event = RDMA_CM_EVENT_CONNECT_ERROR;
	r_qp_fail(id);
}

/* The connection failed.  If the program has taken ESTABLISHED before, the
 * event becomes RDMA_CM_EVENT_DISCONNECTED. */
static void serve_refusal(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);

	r_qp_fail(id);
	if (!id->state.is_up)
		return;
	e->base.event = RDMA_CM_EVENT_DISCONNECTED;
	e->base.status = 0;
}

/* Does the work that an event causes, before the program gets the event. */
static void serve_event(struct r_event *e)
{
	struct r_id *id = r_id(e->base.id);

	if (e->base.event == RDMA_CM_EVENT_CONNECT_RESPONSE)
		serve_response(e);
	else if (e->base.event == RDMA_CM_EVENT_REJECTED ||
		 e->base.event == RDMA_CM_EVENT_UNREACHABLE ||
		 e->base.event == RDMA_CM_EVENT_CONNECT_ERROR)
		serve_refusal(e);
	else if (e->multicast && r_multicast_joined(e)) {
		e->base.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		e->base.status = -errno;
	}
	if (e->base.event == RDMA_CM_EVENT_ESTABLISHED)
		id->state.is_up = true;
	if (e->base.event == RDMA_CM_EVENT_DISCONNECTED)
		id->state.is_disconnected = true;
	if (!e->message.kind)
		return;
	if (e->message.kind == CMPROTO_DONE) { /* of a CMPROTO_ROUTE */
		r_ib_take_route(e);
		return;
	}
	if (e->message.is_datagram)
		fill_ud(id, &e->base.param.ud, &e->message);
	else
		fill_conn(&e->base.param.conn, &e->message);
	/* rdma_conn_param and rdma_ud_param begin with these two fields. */
	e->base.param.conn.private_data =
		e->message.private_bytes ? e->message.private_data : NULL;
	e->base.param.conn.private_data_len = e->message.private_bytes;
}

static struct r_event *pop_event(struct r_channel *c)
{
	struct r_event *e = NULL;
	struct list *n;

	r_take();
	n = list_pop_head(&c->events);
	if (n) {
		e = event_of(n);
		r_id(e->base.listen_id ? e->base.listen_id : e->base.id)
			->unacked++;
		if (e->multicast)
			e->multicast->is_joining = true;
	}
	r_give();
	return e;
}

/*
 * Blocks for ever if another thread has destroyed the channel.  A read(2) of
 * the kernel's channel does not return when another thread closes the
 * descriptor.  rping relies on that: its thread calls exit if rdma_get_cm_event
 * fails.
 */
static void wait_if_destroyed(const struct rdma_event_channel *channel)
{
	int err = errno;

	while (err == EBADF && channel->fd < 0)
		pause();
	errno = err;
}

int rdma_get_cm_event(struct rdma_event_channel *channel,
		      struct rdma_cm_event **event)
{
	struct r_event *e;
	uint64_t token;
	int err;

	if (!event) {
		errno = EINVAL;
		return -1;
	}
	/* pop_event finds no event if another thread has dropped the event
	 * after this thread has read the token. */
	do {
		if (read(channel->fd, &token, sizeof(token)) < 0) {
			wait_if_destroyed(channel);
			return -1;
		}
		e = pop_event(r_channel(channel));
		if (e && is_for_no_device(e)) {
			r_refuse(e, REJ_REMOTE_GID);
			e = NULL;
		}
	} while (!e);
	if (e->base.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
	    !serve_request(e)) {
		err = errno;
		r_refuse(e, R_REJ_NO_RESOURCES);
		r_fail(err,
		       "rdma_get_cm_event: a connection request is rejected, "
		       "since no event channel can be created for its id: %s; "
		       "if no descriptor is left, raise the limit (ulimit -n)",
		       strerror(err));
		return -1;
	}
	serve_event(e);
	*event = &e->base;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event) {
		errno = EINVAL;
		return -1;
	}
	r_take();
	r_id(event->listen_id ? event->listen_id : event->id)->unacked--;
	pthread_cond_broadcast(&r_changed);
	r_give();
	free((struct r_event *)(void *)event);
	return 0;
}

int r_complete(struct r_id *id)
{
	struct rdma_cm_id *b = &id->base;
	int status;

	if (b->event) {
		rdma_ack_cm_event(b->event);
		b->event = NULL;
	}
	if (rdma_get_cm_event(b->channel, &b->event))
		return -1;
	status = b->event->status;
	if (b->event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		status = -ENODEV; /* the call's own event will not come */
	if (!status)
		return 0;
	errno = b->event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED
		: status < 0				  ? -status
							  : status;
	return -1;
}

int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg)
{
	struct r_event *e;

	if ((unsigned)event != NEWER_EVENT_USER &&
	    (unsigned)event != NEWER_EVENT_INTERNAL)
		return r_fail(EINVAL, "rdma_write_cm_event takes the events "
				      "RDMA_CM_EVENT_USER and "
				      "RDMA_CM_EVENT_INTERNAL only");
	e = r_event_new(r_id(id), event, status);
	if (!e)
		return r_fail(ENOMEM, "rdma_write_cm_event: no memory is left");
	/* Stores param.arg, a member that older headers lack. */
	memcpy(&e->base.param, &arg, sizeof(arg));
	r_take();
	r_post(e);
	r_give();
	return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	/* clang-format off */
	static const char *const names[] = {
#define NAME(event) [event] = #event
		NAME(RDMA_CM_EVENT_ADDR_RESOLVED),
		NAME(RDMA_CM_EVENT_ADDR_ERROR),
		NAME(RDMA_CM_EVENT_ROUTE_RESOLVED),
		NAME(RDMA_CM_EVENT_ROUTE_ERROR),
		NAME(RDMA_CM_EVENT_CONNECT_REQUEST),
		NAME(RDMA_CM_EVENT_CONNECT_RESPONSE),
		NAME(RDMA_CM_EVENT_CONNECT_ERROR),
		NAME(RDMA_CM_EVENT_UNREACHABLE),
		NAME(RDMA_CM_EVENT_REJECTED),
		NAME(RDMA_CM_EVENT_ESTABLISHED),
		NAME(RDMA_CM_EVENT_DISCONNECTED),
		NAME(RDMA_CM_EVENT_DEVICE_REMOVAL),
		NAME(RDMA_CM_EVENT_MULTICAST_JOIN),
		NAME(RDMA_CM_EVENT_MULTICAST_ERROR),
		NAME(RDMA_CM_EVENT_ADDR_CHANGE),
		NAME(RDMA_CM_EVENT_TIMEWAIT_EXIT),
#undef NAME
		[NEWER_EVENT_ADDRINFO_RESOLVED] =
			"RDMA_CM_EVENT_ADDRINFO_RESOLVED",
		[NEWER_EVENT_ADDRINFO_ERROR] = "RDMA_CM_EVENT_ADDRINFO_ERROR",
		[NEWER_EVENT_USER] = "RDMA_CM_EVENT_USER",
		[NEWER_EVENT_INTERNAL] = "RDMA_CM_EVENT_INTERNAL",
	};
	/* clang-format on */

	if ((unsigned int)event >= sizeof(names) / sizeof(names[0]))
		return "UNKNOWN EVENT";
	return names[event];
}
