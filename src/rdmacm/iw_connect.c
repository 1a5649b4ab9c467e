/* SPDX-License-Identifier: BSD-2-Clause */
/* Connect, accept and reject for iWARP.  Connecting makes a TCP connection and
 * sends MPA's request; accepting and rejecting send MPA's reply.  On an SCTP
 * association the messages of a DDP stream session take their place. */
#include "rdmacm/explain.h"
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "log/env.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "util/remedy.h"

/* The initiator gives up if the connection and the reply together take longer.
 */
#define CONNECT_NS 55000000000ull
#define FAST_NS	   8000000000ull /* in place of CONNECT_NS: ADVERB_CM_FAST */
/* After a rejection: how long the peer may take to close the connection, and
 * how many peers may do so at a time. */
#define LINGER_NS    5000000000ull
#define LINGER_PEERS 128
/*
 * How long the initiator tries again while no program listens at the
 * destination.  A server of perftest -R listens a second time, and its client
 * may connect before the second rdma_listen.  For RoCE the broker holds such a
 * request.
 */
#define HOLD_NS	     100000000ull
#define HOLD_LONG_NS 2000000000ull /* for a service in `services` */
#define REPEAT_NS    20000000ull   /* the pause between two attempts */
#define KNOWN	     16		   /* entries of `services` */

/* ---- what this side offers ---- */

/* Returns this side's offer, without revision and private data. */
static struct startup_offer own_offer(const struct r_id *id)
{
	return (struct startup_offer){
		.wants_crc = !env_has_mpa(ENV_MPA_NOCRC),
		.wants_markers = env_has_mpa(ENV_MPA_MARKERS),
		.rtr = MPA_RTR_ALL,
		.ird = id->own.responder_resources,
		.ord = id->own.initiator_depth,
		.ird_max = id->device ? id->device->max_responder : 1,
	};
}

static struct startup_offer caller_offer(const struct r_iw *iw,
					 uint8_t revision)
{
	struct startup_offer o = own_offer(iw->id);

	o.revision = revision;
	o.is_enhanced = revision > 1;
	o.is_peer_to_peer =
		o.is_enhanced && !env_has_mpa(ENV_MPA_CLIENT_SERVER);
	if (iw->sctp) {
		/* each side of a session may send first (RFC 6581 7) */
		o.is_session = true;
		o.is_peer_to_peer = false;
		o.revision = STARTUP_REVISION_MAX;
	}
	o.private_data = iw->start->private_data;
	o.private_bytes = iw->start->private_bytes;
	return o;
}

/* ---- the active side ---- */

static void explain_failure(const struct r_iw *iw, int err, const char *why)
{
	const char *below = iw->sctp ? "SCTP" : "TCP";
	char text[R_ADDR_TEXT];

	r_addr_text(&iw->id->base.route.addr.dst_addr, text);
	if (why)
		r_say("rdma_connect: %s cannot begin with the peer at %s: %s",
		      iw->sctp ? "a DDP stream session" : "MPA", text, why);
	else if (err == ECONNREFUSED)
		r_say("rdma_connect: REJECTED: no program listens at %s (%s); "
		      "start the server first, or check the port",
		      text, below);
	else if (err == ETIMEDOUT)
		r_say("rdma_connect: UNREACHABLE: %s does not answer on %s; "
		      "start the server first, and check the address, the "
		      "route and the firewall",
		      text, below);
	else if (err == EBADF)
		r_say("rdma_connect: no %s connection to %s can be made: the "
		      "program has closed the descriptor of the connection; "
		      "let the program close all descriptors before it opens a "
		      "device, not later",
		      below, text);
	else
		r_say("rdma_connect: no %s connection to %s can be made: %s; "
		      "%s",
		      below, text, strerror(err),
		      err == EADDRNOTAVAIL ? "end connections, or widen "
					     "net.ipv4.ip_local_port_range"
		      : err == ENOSPC
			      ? "raise fs.epoll.max_user_watches"
			      : remedy_of(err, "check the address, the route "
					       "and the firewall"));
}

/* Returns the event by which the kernel's cma_iw_handler reports the error. */
static enum rdma_cm_event_type failure_event(int err)
{
	if (err == ECONNREFUSED || err == ECONNRESET)
		return RDMA_CM_EVENT_REJECTED;
	return err == ETIMEDOUT ? RDMA_CM_EVENT_UNREACHABLE
				: RDMA_CM_EVENT_CONNECT_ERROR;
}

/* Ends the outgoing connection, and posts the event with the status -err and
 * the private data of the peer's frame f; NULL: none. */
static void end_call(struct r_iw *iw, enum rdma_cm_event_type type, int err,
		     const struct mpa_frame *f)
{
	r_iw_set_timer(iw, UINT64_MAX);
	r_iw_close_fd(iw);
	r_iw_enter(iw, R_IW_OVER, NULL);
	r_iw_post(iw->id, NULL, type, -err, f);
}

/* Ends the outgoing connection, with a message and the event of the errno err.
 * why: the sentence of a failed start; NULL: err says all. */
static void fail_call(struct r_iw *iw, int err, const char *why)
{
	explain_failure(iw, err, why);
	end_call(iw, failure_event(err), err, NULL);
}

/* Makes the socket of an outgoing connection, and binds the socket to the id's
 * source address.  Returns 0 or -errno. */
static int make_socket(struct r_iw *iw)
{
	const struct sockaddr *from = &iw->id->base.route.addr.src_addr;
	int on = 1, err;

	if (r_iw_uses_sctp())
		return r_iw_sctp_bind(iw, iw->id, from);
	err = r_iw_socket(iw, iw->id, from->sa_family);
	if (err)
		return err;
	/* With this option connect(2) chooses the port, and a port that is in
	 * use with another peer can be chosen again.  bind(2) would need a port
	 * that no connection uses, and so might find none. */
	if (!r_addr_port(from) &&
	    setsockopt(iw->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
		       sizeof(on)))
		errno = 0;
	return r_iw_bind_socket(iw, iw->id, from);
}

/* The last services to which this process has connected: IP addresses as GIDs,
 * ports in host order.  Lock: r_lock. */
static struct service {
	uint8_t ip[16];
	uint16_t port;
} services[KNOWN];
static unsigned next_service;

static struct service service_of(const struct r_id *id)
{
	struct service s = {.port = r_addr_port(&id->base.route.addr.dst_addr)};

	memcpy(s.ip, id->path.peer, 16);
	return s;
}

static bool is_known(const struct service *s)
{
	for (int i = 0; i < KNOWN; i++)
		if (services[i].port == s->port &&
		    !memcmp(services[i].ip, s->ip, 16))
			return true;
	return false;
}

static void note_service(const struct r_id *id)
{
	struct service s = service_of(id);

	if (!is_known(&s))
		services[next_service++ % KNOWN] = s;
}

/* No program listens at the destination: ends the call, or sets the timer for
 * the next attempt. */
static void call_refused(struct r_iw *iw)
{
	if (monotonic_ns() >= iw->start->hold_ns) {
		fail_call(iw, ECONNREFUSED, NULL);
		return;
	}
	r_iw_close_fd(iw);
	r_iw_set_timer(iw, monotonic_ns() + REPEAT_NS);
}

static void call_failed(struct r_iw *iw, int err)
{
	if (err == ECONNREFUSED)
		call_refused(iw);
	else
		fail_call(iw, err, NULL);
}

/* Returns the events of an exchange of frames: the peer's frame and, unless
 * this side's frame is sent, room in the socket. */
static uint32_t exchange_events(const struct r_iw *iw)
{
	const struct r_iw_start *s = iw->start;

	return s->out_sent < s->out_bytes ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

/* Makes the thread adverb-iw wait for the events of an exchange. */
static void watch_exchange(struct r_iw *iw)
{
	r_iw_watch(iw, exchange_events(iw));
}

static void serve_call(struct r_iw *iw, bool is_due);
static void lose_call(struct r_iw *iw);
static void exchange_frames(struct r_iw *iw);

static const struct r_iw_role caller_role = {.serve = serve_call,
					     .lost = lose_call};

/* Makes the object's socket, unless there is one, and MPA's request of this
 * revision.  Returns 0 or -errno. */
static int prepare_call(struct r_iw *iw, uint8_t revision)
{
	int err = iw->fd < 0		      ? make_socket(iw)
		  : fd_identity_holds(iw->fd) ? 0
					      : -EBADF;
	struct startup_offer offer = caller_offer(iw, revision);
	struct r_iw_start *s = iw->start;

	startup_fini(&s->mpa);
	s->begun_ns = s->request_ns = 0;
	s->out_sent = 0;
	s->out_bytes = (uint16_t)startup_connect(&s->mpa, &offer, s->give_up_ns,
						 s->out);
	return err;
}

/*
 * Begins the TCP connection or the SCTP association.  Over TCP also sends MPA's
 * request at once if the connection is made already, as it mostly is to a peer
 * on this host.  Otherwise the thread adverb-iw sends the request.  Over TCP,
 * and in the state R_IW_BUSY, this function needs no r_lock.  Returns 0 or
 * -errno; *is_begun becomes true if connect(2) has not failed.
 */
static int reach_peer(struct r_iw *iw, bool *is_begun)
{
	const struct sockaddr *to = &iw->id->base.route.addr.dst_addr;

	*is_begun = false;
	if (iw->sctp)
		return r_iw_sctp_call(iw);
	r_iw_use_tos(iw);
	if (connect(iw->fd, to, r_addr_size(to)) && errno != EINPROGRESS)
		return -errno;
	*is_begun = true;
	return r_iw_send_start(iw);
}

/* Lets the thread adverb-iw wait for these events.  If the kernel does not add
 * the socket to the epoll set, ends the call: no thread would see the peer's
 * answer.  Leaves errno unchanged. */
static void watch_call(struct r_iw *iw, uint32_t events)
{
	int before = errno;

	errno = 0;
	r_iw_watch(iw, events);
	if (!iw->watched && (errno == ENOSPC || errno == ENOMEM))
		fail_call(iw, errno, NULL);
	errno = before;
}

/* Enters the state that follows an attempt to connect.  err: 0, or the -errno
 * of the step that has failed.  is_begun: that of reach_peer; false if another
 * step has failed. */
static void settle_call(struct r_iw *iw, int err, bool is_begun)
{
	/* With these errors the connection was made, and has ended. */
	bool has_ended = is_begun && (err == -ECONNRESET || err == -EPIPE);

	r_iw_set_timer(iw, iw->start->give_up_ns);
	r_iw_enter(iw, R_IW_CALLING, &caller_role);
	if (err && !has_ended) {
		call_failed(iw, -err);
		return;
	}
	if (iw->sctp || (!err && !iw->start->out_sent)) {
		watch_call(iw, iw->sctp ? EPOLLIN : EPOLLOUT);
		return;
	}
	r_iw_enter(iw, R_IW_STARTING, &caller_role);
	if (err)
		exchange_frames(iw);
	else
		watch_call(iw, exchange_events(iw));
}

/* Begins a connection, and prepares MPA's request of this revision, which
 * is sent when the connection is made. */
static void call_peer(struct r_iw *iw, uint8_t revision)
{
	bool is_begun = false;
	int err = prepare_call(iw, revision);

	if (!err)
		err = reach_peer(iw, &is_begun);
	settle_call(iw, err, is_begun);
}

/*
 * As call_peer, for a thread of the program.  Over TCP releases r_lock for the
 * system calls: connect(2) and send(2) to a peer on this host run the whole
 * handshake, and the thread adverb-iw handles other connections meanwhile.
 * After r_lock is taken again, r_iw_start_thread makes sure that the thread
 * adverb-iw can serve the connection, since the program may have closed the
 * descriptors for which that thread waits.
 */
static void call_unlocked(struct r_iw *iw, uint8_t revision)
{
	bool is_begun = false;
	int err = prepare_call(iw, revision), started;

	if (!err && !iw->sctp) {
		r_iw_enter(iw, R_IW_BUSY, NULL);
		pthread_mutex_unlock(&r_lock);
		err = reach_peer(iw, &is_begun);
		pthread_mutex_lock(&r_lock);
		pthread_cond_broadcast(&r_changed);
	}
	started = r_iw_start_thread();
	if (!err && !started && iw->sctp)
		err = reach_peer(iw, &is_begun);
	settle_call(iw, started ? started : err, is_begun && !started);
}

/* Sets when the initiator gives up, and until when it tries a refused
 * connection again. */
static void set_patience(struct r_iw *iw)
{
	struct service to = service_of(iw->id);
	uint64_t now = monotonic_ns();

	iw->start->give_up_ns =
		now + (env_is_on("ADVERB_CM_FAST") ? FAST_NS : CONNECT_NS);
	if (!env_is_on("ADVERB_STRICT"))
		iw->start->hold_ns =
			now + (is_known(&to) ? HOLD_LONG_NS : HOLD_NS);
}

/* Makes iw->start, and keeps the program's private data there.  Returns 0;
 * -EINVAL: the id was connected before, or belongs to the parent of this forked
 * process; or -ENOMEM. */
static int make_start(struct r_iw *iw, const struct rdma_conn_param *p)
{
	if (r_iw_is_foreign(iw) || iw->state != R_IW_IDLE || iw->start)
		return -EINVAL;
	iw->start = calloc(1, sizeof(*iw->start));
	if (!iw->start)
		return -ENOMEM;
	if (p && p->private_data) {
		memcpy(iw->start->private_data, p->private_data,
		       p->private_data_len);
		iw->start->private_bytes = p->private_data_len;
	}
	return 0;
}

int r_iw_connect(struct r_id *id, const struct rdma_conn_param *p)
{
	int err;

	r_take();
	err = make_start(id->iw, p);
	if (!err) {
		/* Set before r_give: after it another thread may take the event
		 * and destroy the id. */
		id->state.is_decided = true;
		set_patience(id->iw);
		call_unlocked(id->iw, env_has_mpa(ENV_MPA_REV1)
					      ? 1
					      : STARTUP_REVISION_MAX);
	}
	r_give();
	if (err == -EINVAL)
		return r_fail(EINVAL,
			      "rdma_connect: the id was connected before, or "
			      "belongs to the parent of this forked process; "
			      "create another id in this process, and connect "
			      "with it");
	if (err)
		return r_fail(-err,
			      "rdma_connect: the id cannot connect: %s; create "
			      "another id in this process, and connect with it",
			      strerror(-err));
	return 0;
}

/* Stores the port that connect(2) has chosen in the id's source address. */
static void note_port(struct r_iw *iw)
{
	struct sockaddr_storage from;

	if (!r_iw_local(iw, &from))
		r_addr_set_port(&iw->id->base.route.addr.src_addr,
				r_addr_port((struct sockaddr *)&from));
}

/* The peer has accepted: gives the connection to the queue pair. */
static void finish_call(struct r_iw *iw)
{
	int err;

	note_port(iw);
	note_service(iw->id);
	iw->start->out_bytes = 0;
	err = r_iw_open(iw);
	if (err)
		end_call(iw, RDMA_CM_EVENT_CONNECT_ERROR, -err, NULL);
}

/* Sends a Terminate, if the error calls for one: a peer that has accepted must
 * learn why this side closes the connection. */
static void send_terminate(struct r_iw *iw)
{
	struct r_iw_start *s = iw->start;
	uint16_t request_bytes = s->out_sent;
	uint8_t request[MPA_FRAME_MAX];

	_Static_assert(STARTUP_TERMINATE_MAX <= sizeof(s->out), "room");
	memcpy(request, s->out, sizeof(request));
	s->out_sent = 0;
	s->out_bytes = (uint16_t)startup_terminate(&s->mpa, s->out);
	/* if this fails, the peer gets a FIN and no reason */
	r_iw_send_start(iw);
	r_iw_capture_refused(iw, request, request_bytes, true);
	r_iw_sctp_end_session(iw);
}

/* The start has failed.  If the peer seems to have only revision 1 of MPA,
 * calls the peer again with that revision; otherwise ends the call. */
static void fail_start(struct r_iw *iw)
{
	const struct startup *mpa = &iw->start->mpa;

	if (startup_verdict(mpa->error)->is_old_peer &&
	    mpa->offer.revision > 1) {
		r_iw_capture_refused(iw, iw->start->out, iw->start->out_sent,
				     false);
		r_iw_close_fd(iw);
		call_peer(iw, 1);
		return;
	}
	send_terminate(iw);
	fail_call(iw,
		  mpa->error == STARTUP_TIMED_OUT ? ETIMEDOUT
		  : mpa->error == STARTUP_CLOSED ||
				  mpa->error == STARTUP_NO_REPLY
			  ? ECONNRESET
			  : EPROTO,
		  startup_verdict(mpa->error)->text);
}

static void reject_call(struct r_iw *iw)
{
	char text[R_ADDR_TEXT];

	r_say("rdma_connect: REJECTED: the program at %s rejects the "
	      "connection; that program's messages say why",
	      r_addr_text(&iw->id->base.route.addr.dst_addr, text));
	r_iw_capture_refused(iw, iw->start->out, iw->start->out_sent, false);
	end_call(iw, RDMA_CM_EVENT_REJECTED, ECONNREFUSED,
		 &iw->start->mpa.peer);
}

/* Sends this side's frame of MPA and receives the peer's, as far as the socket
 * allows now. */
static void exchange_frames(struct r_iw *iw)
{
	struct r_iw_start *s = iw->start;

	if (r_iw_send_start(iw) || r_iw_take_start(iw))
		startup_end(&s->mpa);
	switch (s->mpa.state) {
	case STARTUP_WAITS:
	case STARTUP_REQUESTED: /* never: only a responder has this state */
		watch_exchange(iw);
		return;
	case STARTUP_ACCEPTED:
		finish_call(iw);
		return;
	case STARTUP_REJECTED:
		reject_call(iw);
		return;
	case STARTUP_FAILED:
		fail_start(iw);
		return;
	}
}

/* No thread will serve the outgoing connection (r_iw_role.lost). */
static void lose_call(struct r_iw *iw)
{
	end_call(iw, RDMA_CM_EVENT_CONNECT_ERROR, EBADF, NULL);
}

/* Returns the result of connecting.  0: the connection is made; EAGAIN: it is
 * not made yet (SCTP); or the errno with which connecting has failed. */
static int connect_result(struct r_iw *iw)
{
	int err = 0;
	socklen_t size = sizeof(err);

	if (iw->sctp)
		return -r_iw_sctp_answer(iw);
	if (!fd_identity_holds(iw->fd))
		return EBADF; /* the program has closed the descriptor */
	return getsockopt(iw->fd, SOL_SOCKET, SO_ERROR, &err, &size) ? errno
								     : err;
}

static void serve_call(struct r_iw *iw, bool is_due)
{
	int err;

	if (is_due && iw->fd < 0) {
		call_peer(iw, iw->start->mpa.offer.revision);
		return;
	}
	if (is_due && iw->state == R_IW_CALLING) {
		fail_call(iw, ETIMEDOUT, NULL);
		return;
	}
	if (is_due) {
		startup_tick(&iw->start->mpa, monotonic_ns());
		fail_start(iw);
		return;
	}
	if (iw->state == R_IW_CALLING) {
		err = connect_result(iw);
		if (iw->sctp && err == EAGAIN)
			return;
		if (err) {
			call_failed(iw, err);
			return;
		}
		r_iw_enter(iw, R_IW_STARTING, &caller_role);
	}
	exchange_frames(iw);
}

/* ---- the passive side ---- */

/* Returns whether the program has yet to accept or reject. */
static bool has_request(const struct r_id *id)
{
	return id->iw && !r_iw_is_foreign(id->iw) &&
	       id->iw->state == R_IW_REQUESTED;
}

/* Accepts the request.  Returns 0; or -errno, and the request is rejected. */
static int accept_request(struct r_id *id, const struct rdma_conn_param *p)
{
	struct r_iw *iw = id->iw;
	struct startup_offer offer = own_offer(id);
	struct r_iw_start *s = iw->start;
	int err;

	if (p && p->private_data) {
		offer.private_data = p->private_data;
		offer.private_bytes = p->private_data_len;
	}
	s->out_bytes = (uint16_t)startup_accept(&s->mpa, &offer, s->out);
	id->state.is_decided = true;
	err = r_iw_open(iw);
	if (err) {
		/* The accepting reply was not sent, so a rejecting reply can
		 * still be sent. */
		s->mpa.state = STARTUP_REQUESTED;
		r_iw_refuse(iw, NULL, 0);
	}
	return err;
}

int r_iw_accept(struct r_id *id, const struct rdma_conn_param *p)
{
	bool is_withdrawn, is_there;
	int err;

	r_take();
	if (has_request(id))
		r_iw_look(id->iw);
	is_withdrawn = id->state.is_withdrawn;
	is_there = has_request(id);
	err = is_there ? accept_request(id, p) : -EINVAL;
	r_give();
	if (!err)
		return 0;
	if (is_withdrawn)
		return r_fail(-err, "rdma_accept: the peer has withdrawn the "
				    "connection request; destroy the id");
	if (!is_there)
		return r_fail(-err,
			      "rdma_accept: the id has no connection request "
			      "to accept, or belongs to the parent of this "
			      "forked process; accept once, in the process "
			      "that has taken the request");
	return r_fail(-err,
		      "rdma_accept: the request is rejected, since the queue "
		      "pair cannot take the connection: %s; mend that, and let "
		      "the peer connect again",
		      strerror(-err));
}

/* Peers that are rejected and close no connection would use up the descriptors
 * of the program.  So the object that began to linger LINGER_PEERS rejections
 * ago is freed; its peer may lose the rejection. */
static void limit_lingering(const struct r_iw *iw)
{
	static uint64_t serials[LINGER_PEERS]; /* under r_lock */
	static uint32_t next;
	struct r_iw *oldest = r_iw_find(serials[next]);

	if (oldest && oldest->state == R_IW_LINGERING)
		r_iw_free(oldest);
	serials[next] = iw->serial;
	next = (next + 1) % LINGER_PEERS;
}

static void serve_lingering(struct r_iw *iw, bool is_due);

static const struct r_iw_role lingering_role = {.serve = serve_lingering,
						.lost = r_iw_free};

/* After the rejection, the thread adverb-iw waits until the peer has closed the
 * connection, or LINGER_NS has passed.  If this side closed first and then
 * received bytes of the peer, it would send a RST, and the peer could lose the
 * rejection.  This side does not even send FIN before the peer: siw handles a
 * FIN that comes together with the rejection first, and then reports a
 * rejection without its private data. */
void r_iw_refuse(struct r_iw *iw, const void *data, uint8_t bytes)
{
	struct startup_offer offer = own_offer(iw->id);
	struct r_iw_start *s = iw->start;
	int err;

	offer.private_data = data;
	offer.private_bytes = data ? bytes : 0;
	r_iw_leave_listener(iw);
	iw->id->iw = NULL;
	iw->id = NULL;
	s->out_sent = 0;
	s->out_bytes = (uint16_t)startup_reject(&s->mpa, &offer, s->out);
	limit_lingering(iw);
	r_iw_enter(iw, R_IW_LINGERING, &lingering_role);
	r_iw_set_timer(iw, monotonic_ns() + LINGER_NS);
	err = r_iw_send_start(iw);
	r_iw_capture_refused(iw, NULL, 0, true);
	if (err)
		r_iw_free(iw);
	else
		watch_exchange(iw);
}

static void serve_lingering(struct r_iw *iw, bool is_due)
{
	bool was_sent = iw->start->out_sent == iw->start->out_bytes;
	uint8_t bytes[4096];
	ssize_t n;

	/* The program may have closed the descriptor, and may have a file of
	 * its own at this number. */
	if (is_due || !fd_identity_holds(iw->fd) || r_iw_send_start(iw)) {
		r_iw_free(iw);
		return;
	}
	n = recv(iw->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
		r_iw_free(iw);
	else if (!was_sent)
		watch_exchange(iw);
}

int r_iw_reject(struct r_id *id, const void *data, uint8_t bytes)
{
	bool is_withdrawn, is_there;

	r_take();
	is_withdrawn = id->state.is_withdrawn;
	is_there = has_request(id);
	if (is_there) {
		r_iw_refuse(id->iw, data, bytes);
		id->state.is_decided = true;
	}
	r_give();
	if (is_there)
		return 0;
	if (is_withdrawn)
		return r_fail(EINVAL, "rdma_reject: the peer has withdrawn the "
				      "connection request; destroy the id");
	return r_fail(EINVAL,
		      "rdma_reject: the id has no connection request to "
		      "reject, or belongs to the parent of this forked "
		      "process; reject once, in the process that has taken "
		      "the request");
}
