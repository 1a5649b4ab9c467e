/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives connections to queue pairs, handles the news of these connections, and
 * ends the connections.
 *
 * A thread releases r_lock for a call of libibverbs, and sets the state to
 * R_IW_BUSY meanwhile.  Threads that want to free the struct r_iw wait for the
 * end of the call.  The thread in the call handles the news afterwards, unless
 * its call has aborted the connection.
 */
#include "rdmacm/explain.h"
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "iwarp/stream.h"
#include "log/env.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "verbs/iwarp.h"

/* How long the responder waits for the initiator's first FPDU in the
 * peer-to-peer model. */
#define READY_NS 10000000000
/* Unless ADVERB_STRICT is on: how long the responder waits in the client-server
 * model for the initiator's first FPDU.  Then the responder sends what its
 * program has posted.  The servers of some programs send first, which adapters
 * that do not wait for an FPDU, such as the kernel's siw, allow. */
#define BEGIN_NS 500000000
/* Unless ADVERB_STRICT is on: how long the initiator waits for an FPDU of the
 * peer before it sends the first WRITE without bytes.  A responder such as the
 * kernel's siw may have received the ready-to-receive message before it began
 * to look for that message.  Then it finds the message only when more bytes
 * arrive. */
#define NUDGE_NS 200000000

/* ---- events ---- */

bool r_iw_post(struct r_id *id, struct rdma_cm_id *listener,
	       enum rdma_cm_event_type type, int status,
	       const struct mpa_frame *f)
{
	struct r_event *e = listener ? r_event_new(id, type, status)
				     : r_event_sure(id, type, status);
	size_t bytes = f ? f->private_bytes : 0;
	struct rdma_conn_param *p;
	char text[R_ADDR_TEXT];

	if (!e)
		return false;
	p = &e->base.param.conn;
	e->base.listen_id = listener;
	if (bytes > sizeof(e->mpa_private)) {
		r_say("rdma_cm: the peer at %s has sent %zu bytes of private "
		      "data, and the program gets the first %zu, since "
		      "librdmacm counts them in one byte (private_data_len); "
		      "let the peer send less",
		      r_addr_text(&id->base.route.addr.dst_addr, text), bytes,
		      sizeof(e->mpa_private));
		bytes = sizeof(e->mpa_private);
	}
	if (bytes) {
		memcpy(e->mpa_private, f->private_data, bytes);
		p->private_data = e->mpa_private;
		p->private_data_len = (uint8_t)bytes;
	}
	if (listener) {
		p->responder_resources = id->remote.qp.initiator_depth;
		p->initiator_depth = id->remote.qp.responder_resources;
	} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
		p->responder_resources = id->iw->ird;
		p->initiator_depth = id->iw->ord;
	}
	r_post(e);
	return true;
}

/* ---- calls of libibverbs ---- */

static void settle_news(struct r_iw *iw);

static const struct r_iw_role stream_role = {.settle = settle_news};

/* Releases r_lock for a call of libibverbs, until end_call.  First puts the
 * tokens that are held back, as r_hold_tokens requires. */
static void begin_call(struct r_iw *iw)
{
	r_iw_enter(iw, R_IW_BUSY, &stream_role);
	r_put_tokens();
	pthread_mutex_unlock(&r_lock);
}

static void end_call(struct r_iw *iw, enum r_iw_state state)
{
	pthread_mutex_lock(&r_lock);
	r_iw_enter(iw, state, &stream_role);
	pthread_cond_broadcast(&r_changed);
}

static void await_call(const struct r_iw *iw)
{
	while (iw->state == R_IW_BUSY)
		pthread_cond_wait(&r_changed, &r_lock);
}

/* ---- the beginning ---- */

/*
 * Called by libibverbs under its progress lock, so this function does not wait
 * for r_lock.  If r_lock is free, the event is posted at once; otherwise the
 * thread adverb-iw posts the event.  In the state R_IW_BUSY the thread in the
 * call posts the event.
 */
static void tell_news(void *arg, enum host_stream_news what)
{
	if (pthread_mutex_trylock(&r_lock)) {
		r_iw_add_news(arg, 1u << what);
		return;
	}
	r_iw_note_news(arg, 1u << what);
	settle_news(arg);
	pthread_mutex_unlock(&r_lock);
}

/* Fills in *c with what the two ends agreed on, and notes the queue pair of the
 * connection. */
static void fill_stream(struct r_iw *iw, struct stream_config *c)
{
	startup_stream(&iw->start->mpa, r_iw_segment(iw), c);
	iw->ird = (uint8_t)bits_min_u32(c->ird, UINT8_MAX);
	iw->ord = (uint8_t)bits_min_u32(c->ord, UINT8_MAX);
	iw->verbs = iw->id->device->verbs;
	iw->calls = iw->id->device->iwarp;
	iw->qpn = iw->id->own.qpn;
}

/* Posts ESTABLISHED, unless that was done. */
static void post_established(struct r_iw *iw)
{
	const struct startup *mpa = iw->start ? &iw->start->mpa : NULL;

	if (iw->is_established)
		return;
	iw->is_established = true;
	/* The initiator's program gets the private data of the reply.  The
	 * responder's program already has the private data of the request. */
	r_iw_post(iw->id, NULL, RDMA_CM_EVENT_ESTABLISHED, 0,
		  mpa && mpa->is_initiator ? &mpa->peer : NULL);
}

static void drop_start(struct r_iw *iw)
{
	if (iw->start)
		startup_fini(&iw->start->mpa);
	free(iw->start);
	iw->start = NULL;
}

/* Returns how the connection began, for a capture.  The responder has sent
 * nothing yet: its reply is host_stream.first. */
static struct host_stream_start stream_start(const struct r_iw_start *s)
{
	return (struct host_stream_start){
		.is_initiator = s->mpa.is_initiator,
		.begun_ns = s->begun_ns,
		.request_ns = s->request_ns,
		.sent = s->out,
		.sent_bytes = s->mpa.is_initiator ? s->out_sent : 0,
		.got = s->mpa.held,
		.got_bytes = s->mpa.held_bytes,
	};
}

/* The program has closed the descriptor of the connection, and may have a file
 * of its own at this number, which no queue pair may get.  Returns -EBADF. */
static int refuse_file(struct r_iw *iw)
{
	r_say("rdma_cm: the program has closed the descriptor of a connection "
	      "of an iWARP device, so the queue pair does not get the "
	      "connection; let the program close all descriptors before it "
	      "opens a device, not later");
	r_iw_enter(iw, R_IW_OVER, NULL);
	return -EBADF;
}

int r_iw_open(struct r_iw *iw)
{
	struct host_stream_start start = stream_start(iw->start);
	struct stream_config c;
	struct host_stream s = {.config = &c,
				.start = &start,
				.first = iw->start->out,
				.first_bytes = iw->start->out_bytes,
				.news = tell_news,
				.arg = iw};
	bool awaits_peer = iw->start->mpa.agreed.is_peer_to_peer &&
			   !iw->start->mpa.is_initiator;
	int err;

	if (!fd_identity_holds(iw->fd))
		return refuse_file(iw);
	s.ready_within_ns = awaits_peer ? READY_NS : 0;
	if (!env_is_on("ADVERB_STRICT")) {
		s.begin_after_ns = BEGIN_NS;
		s.nudge_after_ns = NUDGE_NS;
	}
	s.early = iw->start->mpa.early;
	s.early_bytes = iw->start->mpa.early_bytes;
	memcpy(s.peer, iw->id->path.peer, sizeof(s.peer));
	fill_stream(iw, &c);
	r_iw_set_timer(iw, UINT64_MAX);
	s.fd = r_iw_give_fd(iw);
	begin_call(iw);
	err = iw->calls->open(iw->verbs, iw->qpn, &s);
	end_call(iw, err ? R_IW_OVER : R_IW_OPEN);
	if (err) {
		r_iw_keep_fd(iw, s.fd);
		return err;
	}
	if (!awaits_peer)
		post_established(iw);
	drop_start(iw);
	settle_news(iw);
	return 0;
}

void r_iw_capture_refused(const struct r_iw *iw, const uint8_t *request,
			  uint16_t request_bytes, bool has_out)
{
	const struct verbs_iwarp *calls = r_device_iwarp();
	struct host_stream_start start = stream_start(iw->start);
	const struct stream_config none = {.is_session = false};
	const struct host_stream s = {
		.fd = iw->fd,
		.config = &none,
		.start = &start,
		.first = iw->start->out,
		.first_bytes = has_out ? iw->start->out_sent : 0,
	};

	start.sent = request;
	start.sent_bytes = start.is_initiator ? request_bytes : 0;
	if (!start.request_ns)
		start.request_ns = start.begun_ns;
	if (calls && !iw->sctp && start.begun_ns && fd_identity_holds(iw->fd))
		calls->capture_refused(&s);
}

/* ---- the end ---- */

/* The connection has ended: posts DISCONNECTED if ESTABLISHED was posted, else
 * CONNECT_ERROR. */
static void post_end(struct r_iw *iw)
{
	r_iw_enter(iw, R_IW_OVER, &stream_role);
	if (iw->is_established)
		r_iw_post(iw->id, NULL, RDMA_CM_EVENT_DISCONNECTED, 0, NULL);
	else
		r_iw_post(iw->id, NULL, RDMA_CM_EVENT_CONNECT_ERROR,
			  -ECONNRESET, NULL);
}

/* Clears the news of the connection, and posts the events that follow from
 * them. */
static void settle_news(struct r_iw *iw)
{
	uint32_t bits;

	if (iw->state == R_IW_BUSY)
		return; /* the thread in the call handles the news later */
	bits = r_iw_take_news(iw);
	if (iw->state != R_IW_OPEN)
		return;
	if (bits & 1u << HOST_STREAM_READY)
		post_established(iw);
	if (bits & 1u << HOST_STREAM_ENDED)
		post_end(iw);
}

/* Makes the queue pair send what was posted, and then end the connection, by
 * the FIN of TCP or the SHUTDOWN of SCTP.  Returns 0, also if an established
 * connection has ended already; -EINVAL: there is no connection. */
static int disconnect_stream(struct r_iw *iw)
{
	await_call(iw);
	if (iw->state == R_IW_OVER && iw->is_established)
		return 0; /* the event DISCONNECTED was posted */
	if (iw->state != R_IW_OPEN)
		return -EINVAL;
	begin_call(iw);
	iw->calls->close(iw->verbs, iw->qpn, iw);
	end_call(iw, R_IW_OPEN);
	settle_news(iw);
	return 0;
}

int r_iw_disconnect(struct r_id *id)
{
	int err = -EINVAL;

	r_take();
	if (id->iw && !r_iw_is_foreign(id->iw))
		err = disconnect_stream(id->iw);
	r_give();
	if (err)
		return r_fail(-err,
			      "rdma_disconnect: the id has no connection, or "
			      "belongs to the parent of this forked process; "
			      "call rdma_disconnect only after ESTABLISHED, in "
			      "the process that has connected");
	return 0;
}

void r_iw_abort_stream(struct r_iw *iw)
{
	await_call(iw);
	if (iw->state != R_IW_OPEN)
		return;
	begin_call(iw);
	iw->calls->abort(iw->verbs, iw->qpn, iw);
	end_call(iw, R_IW_OPEN);
}

void r_iw_abort(struct r_id *id)
{
	r_take();
	if (id->iw && !r_iw_is_foreign(id->iw)) {
		r_iw_abort_stream(id->iw);
		if (id->iw->state == R_IW_OPEN)
			post_end(id->iw);
	}
	r_give();
}
