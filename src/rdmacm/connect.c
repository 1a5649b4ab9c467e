/* SPDX-License-Identifier: BSD-2-Clause */
/* Listen, connect, accept, reject, disconnect: the program's part of a
 * conversation (IBTA 12.6).  The broker sends and receives the messages. */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "rdmacm/object.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/env.h"
#include "util/bits.h"
#include "util/random.h"
#include "util/write_signals.h"

#define CM_TIMEOUT 20 /* 4.3 s */
#define CM_RETRIES 15 /* as with the kernel's rdma_cm */
/* With ADVERB_CM_FAST a request is given up after 8 s, or after 21 s if
 * ADVERB_STRICT is on, too: then no wait is shorter than CM_TIMEOUT. */
#define FAST_RETRIES 4
#define ACK_TIMEOUT  17 /* 0.5 s: twice the packet lifetime */
#define HOP_LIMIT    64
#define REJ_ECE	     35 /* IBTA 12.6.7.2: the vendor option is refused */

/* Bytes of private data that a program may put into each message of the CM
 * (IBTA 12.6, A11.3).  ROOM_IP: the bytes of IP addressing in a REQ and a
 * SIDR_REQ, which requests for GIDs do not have. */
enum {
	ROOM_REQ = 56,
	ROOM_REP = 196,
	ROOM_REJ = 148,
	ROOM_SIDR = 180,
	ROOM_SIDR_REP = 136,
	ROOM_IP = 36,
};

#define NO_REQUEST                                                             \
	"rdma_accept: the id has no connection request to accept; call "       \
	"rdma_accept once, for the id of a CONNECT_REQUEST"

static bool is_datagram(const struct r_id *id)
{
	return id->base.qp_type == IBV_QPT_UD;
}

/* The pipe ADVERB_READY_FD, which `adverb pair` has given this program; -1:
 * there is none. */
static int ready_fd = -1;
/* The result of fstat for the pipe.  A mark of fd_identity would not do: after
 * the program has closed the pipe, adverb itself may mark another file that has
 * got the pipe's number. */
static struct stat ready;

/* Looks at the pipe when the library is loaded: later the program may close the
 * descriptor and reuse its number. */
__attribute__((constructor)) static void find_ready_fd(void)
{
	const char *text = env_text("ADVERB_READY_FD");
	int fd = text && *text ? atoi(text) : -1;

	if (fd > STDERR_FILENO && !fstat(fd, &ready) && S_ISFIFO(ready.st_mode))
		ready_fd = fd;
}

static bool is_ready_pipe(void)
{
	struct stat now;

	return ready_fd >= 0 && !fstat(ready_fd, &now) &&
	       now.st_mode == ready.st_mode && now.st_dev == ready.st_dev &&
	       now.st_ino == ready.st_ino;
}

/*
 * Tells `adverb pair`, if it has started this program, that the program
 * listens: writes a byte to the pipe.  `adverb pair` reads one byte, and then
 * starts the client, so a second byte is not written.
 */
static void say_ready(void)
{
	static bool said;
	struct write_signals held;

	r_take();
	if (!said && is_ready_pipe()) {
		/* `adverb pair` may have ended: then write fails. */
		write_signals_hold(&held);
		if (write(ready_fd, "", 1) < 0)
			errno = 0;
		write_signals_give(&held);
	}
	said = true;
	r_give();
}

/* Returns 0, or -1 and errno with a message. */
static int listen_roce(struct r_id *id, int backlog)
{
	struct cmproto m = {.backlog = backlog > 0 ? (uint32_t)backlog : 0};
	char text[R_ADDR_TEXT];
	int err;

	if (!id->state.is_listening)
		id->backlog = m.backlog;
	err = r_call(id, &m, CMPROTO_LISTEN);
	if (!err)
		return 0;
	r_addr_text(&id->base.route.addr.src_addr, text);
	if (err == -EADDRINUSE)
		return r_fail(EADDRINUSE,
			      "rdma_listen: another id already listens at %s; "
			      "choose another port",
			      text);
	if (err == -EDQUOT) /* the reason says what to do */
		return r_fail(EDQUOT,
			      "rdma_listen: the id cannot listen at %s: %s",
			      text, r_reason(EDQUOT));
	return r_fail(-err,
		      "rdma_listen: the id cannot listen at %s: %s; bind a new "
		      "id to this address, and call rdma_listen with it",
		      text, r_reason(-err));
}

/*
 * Listens at the broker for RoCE, and with TCP for iWARP; an id that is bound
 * for all devices listens at both.  If either call fails, no request comes by
 * RoCE or iWARP: the TCP socket accepts connections only after the broker
 * listens (r_iw_serve).  Returns 0, or -1 and errno with a message.
 */
static int listen_all(struct r_id *id, int backlog)
{
	int err;

	if (id->iw && r_iw_listen(id, backlog))
		return -1;
	if (id->handle && listen_roce(id, backlog)) {
		err = errno;
		if (id->iw)
			r_iw_unlisten(id);
		errno = err;
		return -1;
	}
	if (id->iw)
		r_iw_serve(id);
	return 0;
}

/* Binds the id to a free port at all IPv4 addresses of this host.  Returns 0,
 * or -1 and errno with a message. */
static int bind_any(struct r_id *id)
{
	struct sockaddr_storage any = {.ss_family = AF_INET};

	return r_bind(id, (const struct sockaddr *)&any);
}

int rdma_listen(struct rdma_cm_id *base, int backlog)
{
	struct r_id *id = r_id(base);

	if (id->state.has_destination || id->state.is_passive ||
	    id->state.is_listening)
		return r_fail(EINVAL, "rdma_listen: the id already listens, "
				      "has a destination, or came with a "
				      "connection request; create another id");
	if (!r_is_bound(id) && bind_any(id))
		return -1;
	if (listen_all(id, backlog))
		return -1;
	say_ready();
	return 0;
}

/* Copies the program's private data into the message.  Returns 0, or -1 and
 * errno if there are more than `room` bytes. */
static int put_private(struct cmproto *m, const void *data, size_t bytes,
		       size_t room)
{
	if (bytes > room)
		return r_fail(EINVAL,
			      "rdma_cm: %zu bytes of private data do not fit "
			      "into the message, which has room for %zu; pass "
			      "fewer bytes",
			      bytes, room);
	if (bytes && data) {
		memcpy(m->private_data, data, bytes);
		m->private_bytes = (uint8_t)bytes;
	}
	return 0;
}

/* Fills in the fields that CMPROTO_CONNECT and CMPROTO_ACCEPT share. */
static void fill_common(struct r_id *id, struct cmproto *m)
{
	const struct r_device *d = id->device;

	m->qp.psn = id->own.psn;
	m->qp.qpn = id->own.qpn;
	m->qp.qkey = id->own.qkey;
	m->qp.responder_resources = id->own.responder_resources;
	m->qp.initiator_depth = id->own.initiator_depth;
	m->qp.flow_control = id->own.flow_control;
	m->qp.retry_count = id->own.retry_count;
	m->qp.rnr_retry = id->own.rnr_retry;
	m->qp.has_srq = id->own.has_srq;
	m->qp.mtu = id->path.mtu;
	m->qp.ack_timeout = id->options.ack_timeout ? id->options.ack_timeout
			    : r_is_ib(id) ? r_ib_ack_timeout(id, d->ack_delay)
					  : ACK_TIMEOUT;
	m->qp.ack_delay = 0;
	m->qp.traffic_class = id->options.tos;
	m->qp.hop_limit = HOP_LIMIT;
	m->qp.transport = id->base.qp_type == IBV_QPT_UC;
	m->qp.ca_guid = d->guid;
	m->qp.ece_vendor = id->own.ece.vendor_id;
	m->qp.ece_options = id->own.ece.options;
	m->is_datagram = is_datagram(id);
	m->is_ib = r_is_ib(id);
	if (!m->is_ib)
		return;
	m->qp.ack_delay = d->ack_delay;
	m->path = id->path.ib;
	m->alternate = id->path.alternate;
	/* only a REP has this field, and it counts only if the peer's REQ has
	 * an alternate path */
	if (!m->alternate.path.remote_lid)
		m->alternate.failover = CMMSG_FAILOVER_UNSUPPORTED;
	m->qp.pkey = id->path.ib.pkey;
	m->qp.traffic_class = id->path.ib.traffic_class;
	m->qp.hop_limit = id->path.ib.hop_limit;
}

/* Stores the program's parameters, with the depths limited to responder_max and
 * initiator_max.  If p is NULL, the depths and the retry counts get their
 * greatest values. */
static void take_param(struct r_id *id, const struct rdma_conn_param *p,
		       uint8_t responder_max, uint8_t initiator_max)
{
	static const struct rdma_conn_param most = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	if (!p)
		p = &most;
	id->own.responder_resources =
		bits_min_u8(p->responder_resources, responder_max);
	id->own.initiator_depth =
		bits_min_u8(p->initiator_depth, initiator_max);
	id->own.retry_count = bits_min_u8(p->retry_count, 7);
	id->own.rnr_retry = bits_min_u8(p->rnr_retry_count, 7);
	id->own.flow_control = p->flow_control != 0;
	id->own.qpn = id->base.qp ? id->base.qp->qp_num : p->qp_num;
	id->own.has_srq = id->base.qp ? id->base.qp->srq != NULL : p->srq != 0;
}

static void set_decided(struct r_id *id, bool is_decided)
{
	r_take();
	id->state.is_decided = is_decided;
	r_give();
}

/* Returns 0, or -1 and errno with a message. */
static int connect_roce(struct r_id *id,
			const struct rdma_conn_param *conn_param)
{
	struct cmproto m = {.timeout = CM_TIMEOUT,
			    .max_retries = CM_RETRIES,
			    .is_strict = env_is_on("ADVERB_STRICT")};
	const struct sockaddr *to = &id->base.route.addr.dst_addr;
	size_t room = (is_datagram(id) ? ROOM_SIDR : ROOM_REQ) +
		      (r_addr_is_ib(to) ? ROOM_IP : 0);
	int err;

	if (conn_param && put_private(&m, conn_param->private_data,
				      conn_param->private_data_len, room))
		return -1;
	if (env_is_on("ADVERB_CM_FAST"))
		m.max_retries = FAST_RETRIES;
	fill_common(id, &m);
	memcpy(m.at.local, id->path.local, 16);
	memcpy(m.at.peer, id->path.peer, 16);
	m.at.scope = id->path.scope;
	m.at.peer_port = r_addr_port(to);
	if (r_addr_is_ib(to))
		m.at.service_id = r_addr_service(to);
	else if (r_is_ib(id))
		r_ib_put_header(id, &m);
	/* If there are no random numbers, the broker chooses both fields. */
	if (!random_fill(&m.call_id, sizeof(m.call_id), false) ||
	    !random_fill(&m.call_transaction, sizeof(m.call_transaction),
			 false))
		m.call_id = 0;
	/* Set before r_request: once the request is sent, another thread may
	 * take the event and destroy the id. */
	set_decided(id, true);
	err = r_request(id, &m, CMPROTO_CONNECT);
	if (!err)
		return 0;
	set_decided(id, false);
	return r_fail(-err,
		      "rdma_connect: the %s cannot be asked to connect: %s",
		      r_ib_server(), strerror(-err));
}

static bool has_route(const struct r_id *id)
{
	bool has;

	r_take();
	has = id->state.has_route;
	r_give();
	return has;
}

int rdma_connect(struct rdma_cm_id *base, struct rdma_conn_param *conn_param)
{
	struct r_id *id = r_id(base);
	bool is_sync = id->is_sync;

	if (id->state.is_decided || id->state.is_listening ||
	    id->state.is_passive)
		return r_fail(EINVAL, "rdma_connect: the id listens, was "
				      "connected before, or came with a "
				      "connection request; create another id");
	if (!id->device || !has_route(id))
		return r_fail(EINVAL, "rdma_connect: the id has no path to a "
				      "destination; call rdma_resolve_addr and "
				      "rdma_resolve_route first, and wait for "
				      "the event of each");
	take_param(id, conn_param, id->device->max_responder,
		   id->device->max_initiator);
	if (r_is_iwarp(id) ? r_iw_connect(id, conn_param)
			   : connect_roce(id, conn_param))
		return -1;
	return is_sync ? r_complete(id) : 0;
}

/*
 * Calls r_call for a request that is valid in certain states of a conversation
 * only.  Returns 0 or -errno.  -EINVAL also means that there is no
 * conversation, as with the kernel.
 */
static int call_in_state(struct r_id *id, struct cmproto *m, uint16_t kind)
{
	int err = r_call(id, m, kind);

	return err == -ENOENT ? -EINVAL : err;
}

static int accept_datagram(struct r_id *id, const struct rdma_conn_param *p)
{
	struct cmproto m = {0};
	int err;

	if (r_is_ib(id) && r_ib_take_qkey(id, "rdma_accept"))
		return -1;
	m.qp.qkey = id->own.qkey;
	m.qp.qpn = id->base.qp ? id->base.qp->qp_num : p ? p->qp_num : 0;
	if (p && put_private(&m, p->private_data, p->private_data_len,
			     ROOM_SIDR_REP))
		return -1;
	err = call_in_state(id, &m, CMPROTO_ACCEPT);
	if (err == -EINVAL)
		return r_fail(EINVAL, NO_REQUEST);
	if (err)
		return r_fail(-err,
			      "rdma_accept: the %s cannot be asked to "
			      "accept: %s",
			      r_ib_server(), r_reason(-err));
	return 0;
}

/* Notes that the program accepts the connection request, so that events of the
 * id are posted from now on.  Returns false if the peer has withdrawn the
 * request. */
static bool decide_request(struct r_id *id)
{
	bool decides;

	r_take();
	decides = !id->state.is_withdrawn;
	id->state.is_decided = decides;
	r_give();
	return decides;
}

/* Returns 0, or -1 and errno with a message. */
static int accept_roce(struct r_id *id,
		       const struct rdma_conn_param *conn_param)
{
	struct cmproto m = {0}, no = {.status = R_REJ_CONSUMER};
	int err;

	if (conn_param && put_private(&m, conn_param->private_data,
				      conn_param->private_data_len, ROOM_REP))
		return -1;
	fill_common(id, &m);
	if (id->base.qp && r_qp_connect(id)) {
		err = errno;
		r_call(id, &no, CMPROTO_REJECT);
		return r_fail(err,
			      "rdma_accept: the queue pair cannot be moved to "
			      "RTS, so the request is rejected: %s",
			      strerror(err));
	}
	if (!decide_request(id)) {
		r_qp_fail(id);
		return r_fail(EINVAL, "rdma_accept: the peer has withdrawn the "
				      "connection request; destroy the id");
	}
	err = r_request(id, &m, CMPROTO_ACCEPT);
	if (err) {
		set_decided(id, false);
		r_qp_fail(id);
		return r_fail(-err,
			      "rdma_accept: the %s cannot be asked to "
			      "accept: %s",
			      r_ib_server(), strerror(-err));
	}
	return 0;
}

/* Also acknowledges the request's event, which rdma_get_request has given to
 * the id: rdma_destroy_id of the listener waits for that.  During the call the
 * id does not have the event: if another thread destroys the id meanwhile,
 * rdma_destroy_id would acknowledge the event, too. */
static int accept_sync_datagram(struct r_id *id,
				const struct rdma_conn_param *p)
{
	struct rdma_cm_event *event = id->base.event;

	id->base.event = NULL;
	if (accept_datagram(id, p)) {
		id->base.event = event;
		return -1;
	}
	if (event)
		rdma_ack_cm_event(event);
	return 0;
}

int rdma_accept(struct rdma_cm_id *base, struct rdma_conn_param *conn_param)
{
	struct r_id *id = r_id(base);
	bool is_sync = id->is_sync;

	if (is_datagram(id))
		return is_sync ? accept_sync_datagram(id, conn_param)
			       : accept_datagram(id, conn_param);
	if (!id->state.is_passive || !id->device || id->state.is_decided)
		return r_fail(EINVAL, NO_REQUEST);
	/* The peer's initiator depth is this side's responder resources. */
	take_param(id, conn_param,
		   bits_min_u8(id->device->max_responder,
			       id->remote.qp.initiator_depth),
		   bits_min_u8(id->device->max_initiator,
			       id->remote.qp.responder_resources));
	if (r_is_iwarp(id) ? r_iw_accept(id, conn_param)
			   : accept_roce(id, conn_param))
		return -1;
	return is_sync ? r_complete(id) : 0;
}

static int reject_request(struct rdma_cm_id *id, int reason, const void *data,
			  uint8_t bytes)
{
	struct cmproto m = {.status = reason};
	int err;

	if (r_is_iwarp(r_id(id)))
		return r_iw_reject(r_id(id), data, bytes);
	if (put_private(&m, data, bytes,
			is_datagram(r_id(id)) ? ROOM_SIDR_REP : ROOM_REJ))
		return -1;
	err = call_in_state(r_id(id), &m, CMPROTO_REJECT);
	if (err == -EINVAL)
		return r_fail(EINVAL, "rdma_reject: the id has no connection "
				      "request to reject; call rdma_reject "
				      "once, for the id of a CONNECT_REQUEST");
	if (err)
		return r_fail(-err,
			      "rdma_reject: the %s cannot be asked to "
			      "reject: %s",
			      r_ib_server(), r_reason(-err));
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data,
		uint8_t private_data_len)
{
	return reject_request(id, R_REJ_CONSUMER, private_data,
			      private_data_len);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
		    uint8_t private_data_len)
{
	return reject_request(id, REJ_ECE, private_data, private_data_len);
}

void r_refuse(struct r_event *e, int reason)
{
	struct rdma_cm_id *id = e->base.id;
	struct cmproto no = {.status = reason};

	/* A request of iWARP is rejected by rdma_destroy_id, below. */
	if (!r_id(id)->iw)
		r_call(r_id(id), &no, CMPROTO_REJECT);
	rdma_ack_cm_event(&e->base);
	rdma_destroy_id(id);
}

int rdma_establish(struct rdma_cm_id *id)
{
	struct cmproto m = {0};
	int err;

	if (id->qp)
		return r_fail(EINVAL,
			      "rdma_establish: the id has a queue pair "
			      "of rdma_create_qp, and rdma_get_cm_event "
			      "confirms such a connection; leave this "
			      "call out");
	if (r_is_iwarp(r_id(id)))
		return r_fail(EINVAL, "rdma_establish: a connection of iWARP "
				      "needs no confirmation; leave this call "
				      "out, and wait for ESTABLISHED");
	err = r_id(id)->state.is_passive || r_id(id)->state.is_up
		      ? -EINVAL
		      : call_in_state(r_id(id), &m, CMPROTO_ESTABLISH);
	if (err == -EINVAL)
		return r_fail(EINVAL, "rdma_establish: the id has no "
				      "connection response to confirm; call "
				      "rdma_establish once, after "
				      "CONNECT_RESPONSE");
	if (err)
		return r_fail(-err,
			      "rdma_establish: the %s cannot be asked to "
			      "confirm: %s",
			      r_ib_server(), r_reason(-err));
	/* The id may be destroyed already: see keep_answer (link_table.c). */
	return 0;
}

/* IBV_EVENT_COMM_EST means that data arrived before the peer's confirmation
 * (RTU).  The data establish the connection on the passive side.  Returns 0 or
 * -errno.  -EISCONN: the connection is established already; -EINVAL: the id
 * does not wait for a confirmation. */
static int note_data(struct r_id *id)
{
	struct cmproto m = {0};

	if (id->state.is_disconnected)
		return -EINVAL;
	if (id->state.is_up)
		return -EISCONN;
	return id->state.is_passive ? call_in_state(id, &m, CMPROTO_ESTABLISH)
				    : -EINVAL;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	int err = 0;

	if (r_is_iwarp(r_id(id)))
		return 0; /* as with the kernel */
	if (event == IBV_EVENT_COMM_EST)
		err = note_data(r_id(id));
	else if (event != IBV_EVENT_PATH_MIG)
		err = -EINVAL;
	if (err && err != -EINVAL && err != -EISCONN)
		return r_fail(-err,
			      "rdma_notify: the %s cannot be asked to "
			      "establish the connection: %s",
			      r_ib_server(), r_reason(-err));
	if (err)
		return r_fail(-err, "rdma_notify: the event does not fit the "
				    "state of the id's connection; pass only "
				    "IBV_EVENT_COMM_EST or IBV_EVENT_PATH_MIG "
				    "of the id's queue pair");
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *base)
{
	struct r_id *id = r_id(base);
	struct cmproto m = {0};
	bool is_sync = id->is_sync;
	int err;

	/* InfiniBand requires this call after the event DISCONNECTED, so
	 * programs make it for iWARP, too. */
	if (r_is_iwarp(id) && id->state.is_disconnected)
		return 0;
	if (r_is_iwarp(id))
		return r_iw_disconnect(id) ? -1 : is_sync ? r_complete(id) : 0;
	r_qp_fail(id);
	/* For a listener at one device the call succeeds, nothing ends, and no
	 * event follows.  The same is true of the kernel's cma.c, which has a
	 * struct ib_cm_id for such a listener. */
	if (id->state.is_listening && id->device)
		return 0;
	if (!id->state.is_decided && !id->state.is_passive)
		return r_fail(EINVAL,
			      "rdma_disconnect: the id was never connected; "
			      "call rdma_disconnect only after ESTABLISHED");
	err = id->state.is_up ? r_request(id, &m, CMPROTO_DISCONNECT)
			      : r_do(id, CMPROTO_DISCONNECT);
	if (err == -EPIPE || err == -ENOENT) {
		/* There is no broker, or the conversation was lost with an
		 * earlier broker: no message of a broker will cause the
		 * event. */
		if (!id->state.is_disconnected &&
		    r_post_local(id, RDMA_CM_EVENT_DISCONNECTED, 0))
			return -1;
	} else if (err == -EINVAL) {
		return r_fail(EINVAL,
			      "rdma_disconnect: the id has no connection; call "
			      "rdma_disconnect only after ESTABLISHED");
	} else if (err) {
		return r_fail(-err,
			      "rdma_disconnect: the %s cannot be asked to "
			      "disconnect: %s",
			      r_ib_server(), r_reason(-err));
	}
	return is_sync ? r_complete(id) : 0;
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id->qp)
		return r_fail(EINVAL, "rdma_set_local_ece takes only an id "
				      "without a queue pair of rdma_create_qp; "
				      "create the queue pair by ibv_create_qp, "
				      "or set no ECE options");
	if (!ece || ece->comp_mask)
		return r_fail(EINVAL, "rdma_set_local_ece: the struct ibv_ece "
				      "is NULL or its comp_mask is not 0; pass "
				      "a struct with comp_mask 0");
	if (!ece->vendor_id || ece->vendor_id > 0xffffff)
		return r_fail(EINVAL, "rdma_set_local_ece: the vendor_id is 0 "
				      "or has more than 24 bits; pass 1 to "
				      "0xffffff");
	r_id(id)->own.ece = *ece;
	return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id->qp)
		return r_fail(EINVAL, "rdma_get_remote_ece takes only an id "
				      "without a queue pair of rdma_create_qp; "
				      "create the queue pair by ibv_create_qp");
	*ece = (struct ibv_ece){.vendor_id = r_id(id)->remote.qp.ece_vendor,
				.options = r_id(id)->remote.qp.ece_options};
	return 0;
}
