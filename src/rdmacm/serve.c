/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_get_cm_event, and calls that wait for their event.  rdma_get_cm_event
 * does the work that an event causes, such as modifying the queue pair, in the
 * program's thread, as rdma-core's librdmacm does.
 */
#include "rdmacm/explain.h"
#include "rdmacm/ib.h"
#include "rdmacm/iw.h"
#include "rdmacm/object.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/token.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define REJ_REMOTE_GID 12 /* IBTA 12.6.7.2: the GID is refused */

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

/* Sets the id's depths to those of the peer's request, limited to those of the
 * device.  rdma_accept may reduce them later. */
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
	r_ib_take_request(id);
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
 * to RTS, and then sends the confirmation (RTU).  The event becomes
 * ESTABLISHED, or CONNECT_ERROR if one of the two fails.  If the id has no
 * queue pair, the program moves its own to RTS, and sends the RTU by
 * rdma_establish. */
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

/* Handles an event by which a connection fails: moves the id's queue pair to
 * ERR, unless the queue pair is UD.  If the program has taken ESTABLISHED
 * before, the event becomes DISCONNECTED. */
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
	else if (e->base.event == RDMA_CM_EVENT_MULTICAST_JOIN &&
		 r_group_joined(e)) {
		e->base.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		e->base.status = -errno;
	}
	if (e->base.event == RDMA_CM_EVENT_ESTABLISHED)
		id->state.is_up = true;
	if (e->base.event == RDMA_CM_EVENT_DISCONNECTED)
		id->state.is_disconnected = true;
	if (!e->message.kind)
		return;
	if (e->message.kind == CMPROTO_DONE) { /* answers CMPROTO_ROUTE */
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

	r_take();
	if (!list_is_empty(&c->events)) {
		e = r_event_of(c->events.next);
		r_unqueue(e);
		list_push_tail(&r_id(r_event_owner(e))->taken, &e->link);
		if (e->base.event == RDMA_CM_EVENT_MULTICAST_JOIN)
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

/* Called after read(2) has failed.  True: read(2) has failed only because
 * r_take_back_token had set O_NONBLOCK for a moment, so the thread reads again.
 * Keeps errno. */
static bool is_to_repeat(const struct rdma_event_channel *channel)
{
	bool waits;

	if (errno != EAGAIN)
		return false;
	r_take();
	waits = token_reads_wait(channel->fd);
	r_give();
	errno = EAGAIN;
	return waits;
}

/*
 * Reads a token, and takes an event.  Returns 0 and sets *e; NULL: the thread
 * reads again, for example because another thread has dropped the event after
 * the token was read.  Returns -1 and sets errno on failure.  If the program
 * has closed the descriptor, this function does not read the file that the
 * program may have there: it takes an event that waits, or fails with EBADF.
 */
static int read_event(struct rdma_event_channel *channel, struct r_event **e)
{
	bool is_ours = fd_identity_holds(channel->fd);
	uint64_t token;

	*e = NULL;
	if (is_ours && read(channel->fd, &token, sizeof(token)) < 0)
		return is_to_repeat(channel) ? 0 : -1;
	if (channel->fd >= 0) /* the channel was not destroyed */
		*e = pop_event(r_channel(channel));
	if (*e || is_ours)
		return 0;
	errno = EBADF;
	return -1;
}

int rdma_get_cm_event(struct rdma_event_channel *channel,
		      struct rdma_cm_event **event)
{
	struct r_event *e;
	int err;

	if (!event) {
		errno = EINVAL;
		return -1;
	}
	do {
		if (read_event(channel, &e)) {
			wait_if_destroyed(channel);
			return -1;
		}
		if (e && is_for_no_device(e)) {
			r_refuse(e, REJ_REMOTE_GID);
			e = NULL;
		}
	} while (!e);
	if (e->base.event == RDMA_CM_EVENT_CONNECT_REQUEST &&
	    !serve_request(e)) {
		err = errno;
		r_refuse(e, R_REJ_NO_RESOURCES);
		/* rdma_create_event_channel has said what to do */
		r_fail(err, "rdma_get_cm_event: a connection request is "
			    "rejected, since no event channel can be created "
			    "for its id");
		return -1;
	}
	serve_event(e);
	*event = &e->base;
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
