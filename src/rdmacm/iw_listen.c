/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners of iWARP: TCP listeners of this process, or with ADVERB_SCTP
 * listeners of wire/sctp.  When the MPA request of a connection is complete,
 * the connection gets an id, and the event CONNECT_REQUEST is posted.  Until
 * then the connection is called a half.
 *
 * A peer may connect and send nothing, or send slowly.  So each half has a
 * deadline.  If there are too many halves, the oldest is closed, and the next
 * connection takes its place.  But a half younger than YOUNG_NS is not closed,
 * since many honest peers may connect at once, and their requests come within
 * YOUNG_NS.  While the oldest half is that young, the next connection waits in
 * the kernel.
 *
 * The request has often come when the connection is accepted, and the program
 * often accepts the request at once.  So with TCP the thread begins to wait for
 * the socket only if the first look finds no complete request, or when the
 * program has left the request alone for some time.  The wait then also shows
 * that the peer has closed the connection.  For SCTP the thread waits from the
 * beginning.
 */
#include "rdmacm/explain.h"
#include "rdmacm/iw_inside.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log/env.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "wire/sctp.h"

#define START_NS   10000000000ull /* in which a request must be complete */
#define HALVES_MIN 8		  /* the least limit of a listener's halves */
#define HALVES_MAX 128		  /* the greatest limit */
#define YOUNG_NS   500000000ull	  /* a half this old may be closed */
#define BACKLOG	   1024 /* if the program gives none, as with the kernel */
#define KERNEL_MIN 128	/* the least backlog of listen(2) */
#define ACCEPTS	   16	/* connections accepted for one epoll event */
#define PAUSE_NS   100000000ull /* when no descriptor or memory is left */
/* If the program has not yet accepted or rejected a request LEFT_NS to
 * 2 * LEFT_NS after the request was complete, the thread begins to wait for the
 * end of the connection. */
#define LEFT_NS 50000000ull

/* Returns how many halves the listener may have. */
static uint32_t most_halves(const struct r_iw *l)
{
	if (l->queue.backlog < HALVES_MIN)
		return HALVES_MIN;
	return l->queue.backlog < HALVES_MAX ? l->queue.backlog : HALVES_MAX;
}

/* Makes the object's socket a listener, or changes the backlog of a listener.
 * Returns 0 or -errno. */
static int begin_listening(struct r_iw *iw, uint32_t backlog)
{
	int on = 1, err = r_iw_start_thread();

	if (err)
		return err;
	if (!fd_identity_holds(iw->fd))
		return -EBADF; /* the program has closed the descriptor */
	if (iw->sctp) {
		err = r_iw_sctp_listen(iw, backlog < KERNEL_MIN ? KERNEL_MIN
								: (int)backlog);
		if (!err)
			iw->queue.backlog = backlog;
		return err;
	}
	r_iw_use_tos(iw);
	/* The connections of this listener inherit the option.  Without the
	 * option, connections that are ending would keep the port in use, and
	 * the next listener could not bind the port. */
	if (setsockopt(iw->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    listen(iw->fd, backlog < KERNEL_MIN ? KERNEL_MIN : (int)backlog))
		return -errno;
	iw->queue.backlog = backlog;
	return 0;
}

int r_iw_listen(struct r_id *id, int backlog)
{
	char text[R_ADDR_TEXT];
	int err = -EINVAL;

	r_take();
	if (!r_iw_is_foreign(id->iw) &&
	    (id->iw->state == R_IW_IDLE || id->iw->state == R_IW_LISTENING))
		err = begin_listening(id->iw, backlog > 0 ? (uint32_t)backlog
							  : BACKLOG);
	r_give();
	if (!err)
		return 0;
	r_addr_text(&id->base.route.addr.src_addr, text);
	if (err == -EADDRINUSE && id->iw->sctp)
		return r_fail(
			EADDRINUSE,
			"rdma_listen: the id cannot listen at %s: another "
			"id of this program has this port of SCTP, and a "
			"program can listen at a port of SCTP only once, "
			"whatever the address; choose another port, or "
			"listen once, at 0.0.0.0 or ::",
			text);
	if (err == -EADDRINUSE)
		return r_fail(EADDRINUSE,
			      "rdma_listen: another socket already "
			      "listens at %s; choose another port",
			      text);
	return r_fail(-err,
		      "rdma_listen: the id cannot listen at %s: %s; bind a new "
		      "id to this address, and call rdma_listen with it",
		      text, strerror(-err));
}

/* Returns what the user can do if a listener pauses because of `err`. */
static const char *pause_remedy(int err)
{
	switch (err) {
	case EMFILE:
		return "raise the limit of descriptors (ulimit -n)";
	case EPERM:
	case EACCES:
	case ENOSYS:
		return "allow accept4(2) in the sandbox and the firewall";
	case ENOSPC:
		return "raise fs.epoll.max_user_watches";
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return "the host has too little memory or too few "
		       "descriptors, so end other programs";
	default:
		return "look in the kernel's log for the cause";
	}
}

/* No descriptor, no memory or no place in an epoll set is left, or accept4(2)
 * is refused.  No event tells when that changes, so the listener tries again
 * after PAUSE_NS. */
static void pause_listener(struct r_iw *l)
{
	r_iw_watch(l, 0);
	r_iw_set_timer(l, monotonic_ns() + PAUSE_NS);
}

/* accept4(2) has failed with `err`. */
static void pause_accepting(struct r_iw *l, int err)
{
	char text[R_ADDR_TEXT];

	r_say("rdma_listen: a connection to %s has to wait, since it cannot be "
	      "accepted: %s; %s",
	      r_addr_text(&l->id->base.route.addr.src_addr, text),
	      strerror(err), pause_remedy(err));
	pause_listener(l);
}

/* epoll_ctl(2) has failed with `err`. */
static void pause_watching(struct r_iw *l, int err)
{
	char text[R_ADDR_TEXT];

	r_say("rdma_listen: connections to %s have to wait, since the kernel "
	      "does not add the listening socket to an epoll set: %s; %s",
	      r_addr_text(&l->id->base.route.addr.src_addr, text),
	      strerror(err), pause_remedy(err));
	pause_listener(l);
}

/* Has the thread accept the connections to the listener.  Pauses the listener
 * if the kernel refuses to add its socket to the epoll set.  Leaves errno
 * unchanged. */
static void resume_listener(struct r_iw *l)
{
	int before = errno;

	errno = 0;
	r_iw_watch(l, EPOLLIN);
	if (!l->watched && (errno == ENOMEM || errno == ENOSPC))
		pause_watching(l, errno);
	errno = before;
}

static void serve_listener(struct r_iw *l, bool is_due);

static const struct r_iw_role listener_role = {.serve = serve_listener};

void r_iw_serve(struct r_id *id)
{
	r_take();
	r_iw_enter(id->iw, R_IW_LISTENING, &listener_role);
	id->state.is_listening = true;
	resume_listener(id->iw);
	r_give();
}

/* shutdown(2) ends the listener.  The port stays bound, because bind_both in
 * bind.c has bound it by its number: the kernel would release a port that the
 * kernel itself had chosen.  setsockopt restores the value that
 * r_iw_bind_socket gave SO_REUSEADDR. */
static void end_listener(const struct r_iw *iw, int may_share)
{
	if (shutdown(iw->fd, SHUT_RDWR) ||
	    setsockopt(iw->fd, SOL_SOCKET, SO_REUSEADDR, &may_share,
		       sizeof(may_share)))
		errno = 0;
}

void r_iw_unlisten(struct r_id *id)
{
	struct r_iw *iw = id->iw;

	r_take();
	if (iw->state == R_IW_IDLE && fd_identity_holds(iw->fd)) {
		if (iw->sctp)
			r_iw_sctp_unlisten(iw);
		else
			end_listener(iw, id->options.may_share);
	}
	r_give();
}

/* ---- halves ---- */

void r_iw_leave_listener(struct r_iw *iw)
{
	struct r_iw *l = iw->listener;

	iw->listener = NULL;
	if (!l)
		return;
	if (list_is_linked(&iw->half)) {
		list_remove(&iw->half);
		l->queue.halves_count--;
	} else {
		l->queue.waiting--;
	}
	if (l->queue.waiting < l->queue.backlog)
		resume_listener(l);
}

/* Removes the listener l, which is about to be freed, from the object. */
static void forget_listener(struct r_iw *iw, void *l)
{
	if (iw->listener == l)
		iw->listener = NULL;
}

void r_iw_drop_halves(struct r_iw *l)
{
	struct list *n;

	while ((n = list_pop_head(&l->queue.halves)))
		r_iw_free(CONTAINER_OF(n, struct r_iw, half));
	l->queue.halves_count = 0;
	r_iw_each(forget_listener, l);
}

static void drop_half(struct r_iw *iw)
{
	r_iw_leave_listener(iw);
	r_iw_free(iw);
}

static struct r_iw *oldest_half(const struct r_iw *l)
{
	struct list *n = l->queue.halves.next;

	return CONTAINER_OF(n, struct r_iw, half);
}

static void drop_oldest_half(struct r_iw *l)
{
	struct r_iw *iw = oldest_half(l);
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	char text[R_ADDR_TEXT];

	r_iw_remote(iw, &peer);
	r_say("rdma_listen: the connection from %s is closed, since its MPA "
	      "request is not complete and a newer connection needs its place: "
	      "at most %u such connections may wait; check what connects to "
	      "this port",
	      r_addr_text((struct sockaddr *)&peer, text),
	      l->queue.halves_count);
	r_iw_sctp_end_session(iw);
	drop_half(iw);
}

static void serve_half(struct r_iw *iw, bool is_due);

static const struct r_iw_role half_role = {.serve = serve_half,
					   .lost = drop_half};

/* Keeps the news of an association in iw->sctp and begins its session.  Returns
 * false if no memory is left. */
static bool begin_session(struct r_iw *iw, const struct sctp_news *news,
			  uint64_t deadline_ns)
{
	iw->sctp = malloc(sizeof(*iw->sctp));
	if (!iw->sctp)
		return false;
	*iw->sctp = *news;
	startup_listen_session(&iw->start->mpa, deadline_ns);
	return true;
}

/* Makes a half of the accepted connection fd.  Takes ownership of fd, and
 * closes it on failure.  news: the news of an association; NULL for TCP. */
static void begin_half(struct r_iw *l, int fd, const struct sctp_news *news)
{
	struct r_iw *iw = r_iw_new(NULL);
	uint8_t revision = env_has_mpa(ENV_MPA_REV1) ? 1 : STARTUP_REVISION_MAX;
	uint64_t deadline_ns = monotonic_ns() + START_NS;

	if (iw)
		iw->start = calloc(1, sizeof(*iw->start));
	if (!iw || !iw->start ||
	    (news && !begin_session(iw, news, deadline_ns))) {
		r_say("rdma_listen: a peer's connection is closed without an "
		      "event, since no memory, descriptor or thread is left "
		      "(%s); free some memory, or raise ulimit -v, -n or -u",
		      strerror(errno));
		if (iw)
			r_iw_free(iw);
		close(fd);
		return;
	}
	r_iw_keep_fd(iw, fd);
	if (l->queue.halves_count >= most_halves(l))
		drop_oldest_half(l);
	r_iw_enter(iw, R_IW_STARTING, &half_role);
	iw->listener = l;
	list_push_tail(&l->queue.halves, &iw->half);
	l->queue.halves_count++;
	iw->start->begun_ns = r_iw_real_ns();
	r_iw_set_timer(iw, deadline_ns);
	if (news) {
		r_iw_watch(iw, EPOLLIN);
		return;
	}
	startup_listen(&iw->start->mpa, revision, deadline_ns);
	serve_half(iw, false);
}

/* Returns whether the next connection must wait in the kernel, since there are
 * too many halves and all are young.  Then also sets a timer, after which the
 * listener accepts again. */
static bool must_wait(struct r_iw *l)
{
	uint64_t until_ns;

	if (l->queue.halves_count < most_halves(l))
		return false;
	until_ns = startup_deadline(&oldest_half(l)->start->mpa) - START_NS +
		   YOUNG_NS;
	if (monotonic_ns() >= until_ns)
		return false;
	r_iw_watch(l, 0);
	r_iw_set_timer(l, until_ns);
	return true;
}

/* Takes a connection of the listener.  Returns its descriptor, or -1 and
 * errno. */
static int take_connection(struct r_iw *l, struct sctp_news *news)
{
	if (l->sctp)
		return r_iw_sctp_accept(l, news);
	if (fd_identity_holds(l->fd))
		return accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	errno = EBADF; /* the program has closed the descriptor */
	return -1;
}

/* Returns whether accept4(2) has failed with `err` for want of something. */
static bool is_want(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS ||
	       err == ENOMEM;
}

/* Accepts the connections that wait in the kernel.  An error of accept4(2) may
 * concern one connection alone, which the kernel then drops.  If all tries
 * fail, the connection stays there, as when a sandbox refuses the call. */
static void accept_ready(struct r_iw *l)
{
	struct sctp_news news;
	int failures = 0;

	for (int i = 0; i < ACCEPTS; i++) {
		int fd;

		/* The program has not taken the events of earlier requests, so
		 * new connections stay in the kernel's queue. */
		if (l->queue.waiting >= l->queue.backlog) {
			r_iw_watch(l, 0);
			return;
		}
		if (must_wait(l))
			return;
		fd = take_connection(l, &news);
		if (fd >= 0) {
			begin_half(l, fd, l->sctp ? &news : NULL);
			continue;
		}
		if (errno == EAGAIN || errno == EBADF || errno == EINVAL)
			return;
		if (is_want(errno) || ++failures == ACCEPTS) {
			pause_accepting(l, errno);
			return;
		}
	}
}

/* When the listener's deadline has come, a pause is over. */
static void serve_listener(struct r_iw *l, bool is_due)
{
	if (is_due)
		resume_listener(l);
	else
		accept_ready(l);
}

/* ---- requests ---- */

/* Returns the IRD or ORD of the peer's request in the 8 bits that struct r_id
 * has for it. */
static uint8_t depth_of(const struct startup *mpa, uint16_t depth)
{
	/* If the peer has named no depth, only the device limits the depth that
	 * rdma_accept uses. */
	if (!mpa->peer.is_enhanced || depth >= UINT8_MAX)
		return UINT8_MAX;
	return (uint8_t)depth;
}

static void set_addresses(struct r_id *id, const struct r_iw *iw)
{
	struct rdma_addr *a = &id->base.route.addr;
	struct sockaddr_storage from = {.ss_family = AF_INET},
				to = {.ss_family = AF_INET};

	/* These calls fail if the peer is gone; then rdma_accept will fail. */
	r_iw_local(iw, &from);
	r_iw_remote(iw, &to);
	r_addr_ip((struct sockaddr *)&from, id->path.local);
	r_addr_ip((struct sockaddr *)&to, id->path.peer);
	r_addr_make(&a->src_addr, id->path.local,
		    r_addr_port((struct sockaddr *)&from));
	r_addr_make(&a->dst_addr, id->path.peer,
		    r_addr_port((struct sockaddr *)&to));
	if (a->dst_addr.sa_family == AF_INET6) {
		id->path.scope =
			((struct sockaddr_in6 *)(void *)&to)->sin6_scope_id;
		a->dst_sin6.sin6_scope_id = id->path.scope;
		a->src_sin6.sin6_scope_id = id->path.scope;
	}
	memcpy(&a->addr.ibaddr.sgid, id->path.local, 16);
	memcpy(&a->addr.ibaddr.dgid, id->path.peer, 16);
}

/* Makes the id of a request.  Returns NULL if r_id_new fails. */
static struct r_id *make_id(const struct r_iw *iw)
{
	const struct r_id *listener = iw->listener->id;
	const struct startup *mpa = &iw->start->mpa;
	struct r_id *id =
		r_id_new(listener->base.channel, listener->base.context,
			 listener->base.ps, listener->base.qp_type);

	if (!id)
		return NULL;
	id->state.is_passive = true;
	id->options = listener->options;
	/* The peer's ORD is its initiator depth, and its IRD its responder
	 * resources. */
	id->remote.qp.initiator_depth = depth_of(mpa, mpa->peer.enhanced.ord);
	id->remote.qp.responder_resources =
		depth_of(mpa, mpa->peer.enhanced.ird);
	set_addresses(id, iw);
	return id;
}

static void serve_request(struct r_iw *iw, bool is_due);

static const struct r_iw_role request_role = {.serve = serve_request};

/* Closes a half for whose request no id or event can be made. */
static void refuse_request(struct r_iw *iw)
{
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	char text[R_ADDR_TEXT];

	r_iw_remote(iw, &peer);
	r_say("rdma_listen: the connection from the peer at %s is closed "
	      "without an event, since no memory or no random number is left "
	      "for its request; free some memory, raise ulimit -v and -d, or "
	      "allow getrandom(2) in the sandbox",
	      r_addr_text((struct sockaddr *)&peer, text));
	r_iw_sctp_end_session(iw);
	drop_half(iw);
}

/* Returns the time at which the thread begins to wait for the end of a
 * connection.  The time is a multiple of LEFT_NS, so that the deadlines of many
 * requests come at once. */
static uint64_t wait_from_ns(void)
{
	return (monotonic_ns() / LEFT_NS + 2) * LEFT_NS;
}

/* Makes the id of a half whose request is complete, and posts the event. */
static void make_request(struct r_iw *iw)
{
	const struct mpa_frame *f = &iw->start->mpa.peer;
	struct r_iw *l = iw->listener;
	struct r_id *id = make_id(iw);

	iw->start->request_ns = r_iw_real_ns();
	r_iw_set_timer(iw, iw->watched ? UINT64_MAX : wait_from_ns());
	if (!id ||
	    !r_iw_post(id, &l->id->base, RDMA_CM_EVENT_CONNECT_REQUEST, 0, f)) {
		free(id);
		refuse_request(iw);
		return;
	}
	r_iw_enter(iw, R_IW_REQUESTED, &request_role);
	iw->id = id;
	id->iw = iw;
	list_remove(&iw->half);
	l->queue.halves_count--;
	l->queue.waiting++;
	if (l->queue.waiting < l->queue.backlog)
		resume_listener(l);
}

/* Closes a half whose request is wrong or has not come in time. */
static void refuse_half(struct r_iw *iw)
{
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	char text[R_ADDR_TEXT];

	r_iw_remote(iw, &peer);
	r_say("rdma_listen: the connection from the peer at %s is closed "
	      "without an event, since %s cannot begin: %s",
	      r_addr_text((struct sockaddr *)&peer, text),
	      iw->sctp ? "a DDP stream session" : "MPA",
	      startup_verdict(iw->start->mpa.error)->text);
	r_iw_capture_refused(iw, NULL, 0, false);
	r_iw_sctp_end_session(iw);
	drop_half(iw);
}

/* The peer has closed the connection, or has sent more than its request, before
 * the program has accepted or rejected the request.  No event follows, and
 * rdma_accept will fail, as for RoCE (withdraw_id in id.c). */
static void withdraw_request(struct r_iw *iw)
{
	iw->id->state.is_withdrawn |= !iw->id->state.is_decided;
	r_iw_close_fd(iw);
	r_iw_enter(iw, R_IW_OVER, NULL);
}

/* Receives what has arrived, or ends the start if its deadline has come.
 * Returns the state of the start. */
static enum startup_state continue_start(struct r_iw *iw, bool is_due)
{
	struct startup *mpa = &iw->start->mpa;

	if (is_due)
		startup_tick(mpa, monotonic_ns());
	else if (r_iw_take_start(iw))
		startup_end(mpa);
	return mpa->state;
}

static void serve_half(struct r_iw *iw, bool is_due)
{
	enum startup_state state = continue_start(iw, is_due);

	if (state == STARTUP_REQUESTED)
		make_request(iw);
	else if (state == STARTUP_WAITS)
		r_iw_watch(iw, EPOLLIN);
	else
		refuse_half(iw);
}

static void serve_request(struct r_iw *iw, bool is_due)
{
	enum startup_state state;

	if (is_due) { /* the time of wait_from_ns has come */
		r_iw_watch(iw, EPOLLIN);
		return;
	}
	state = continue_start(iw, false);
	if (state != STARTUP_WAITS && state != STARTUP_REQUESTED)
		withdraw_request(iw);
}

void r_iw_look(struct r_iw *iw)
{
	if (iw->state == R_IW_REQUESTED && !iw->watched &&
	    fd_identity_holds(iw->fd))
		serve_request(iw, false);
}

void r_iw_taken(struct r_id *id)
{
	r_take();
	if (id->iw && !r_iw_is_foreign(id->iw))
		r_iw_leave_listener(id->iw);
	r_give();
}
