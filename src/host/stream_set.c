/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/stream_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "host/capture_stream.h"
#include "host/stream_socket.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "util/monotonic.h"
#include "wire/tcp.h"

#define FEW	  4	      /* up to this many connections need no epoll */
#define BATCH	  32	      /* events of one epoll_wait */
#define CHECK_NS  1000000     /* between checks that a descriptor is ours */
#define LATE_NS	  5000000     /* how late a deadline may be served */
#define CLOSE_NS  10000000000 /* the limit of an end that must be sent */
#define DRAIN_MS  20	      /* one wait for room in stream_set_drain */
#define DRAIN_NS  2000000000u /* all waits of one stream_set_drain */
#define NUDGES	  4    /* WRITEs without bytes (host_stream.nudge_after_ns) */
#define MESSAGES  32   /* of one take_messages, after the first */
#define ALL_LOOKS 4    /* one look in this many is at all sockets */
#define HOT_LOOKS 4096 /* vain looks (about 1 ms) after which none is hot */

void stream_set_init(struct stream_set *set)
{
	memset(set, 0, sizeof(*set));
	list_init(&set->open);
	list_init(&set->lingering);
	set->due_ns = STREAM_SOCKET_NEVER;
}

static void free_all(struct stream_set *set, struct list *sockets)
{
	struct list *n;

	while ((n = list_pop_head(sockets)))
		stream_socket_free(set, stream_socket_of(n));
}

void stream_set_fini(struct stream_set *set)
{
	free_all(set, &set->open);
	free_all(set, &set->lingering);
	fd_identity_close(stream_socket_epoll(set));
	map_fini(&set->by_qpn);
	free(set->rx);
	free(set->tx);
	while (set->spare_count)
		free(set->spares[--set->spare_count]);
	stream_buffer_fini(&set->buffers);
	stream_set_init(set);
}

/* Does fd still refer to adverb's file?  The program may have closed it or put
 * another file in its place.  *checked_ns: when fd was last checked. */
static bool is_ours(int fd, uint64_t *checked_ns, uint64_t now_ns)
{
	if (now_ns - *checked_ns <= CHECK_NS)
		return true;
	if (!fd_identity_holds(fd))
		return false;
	*checked_ns = now_ns;
	return true;
}

/* Must the connection end soon: does the kernel refuse to send, or has a QP
 * failed whose last bytes the socket does not take? */
static bool is_ending(const struct stream_socket *s)
{
	return s->is_cut || (s->left_bytes && engine_stream_has_failed(s->q));
}

/* Sets a deadline for a connection that must end soon, so that the program gets
 * the news of the end although the peer does not read. */
static void limit_end(struct stream_set *set, struct stream_socket *s,
		      uint64_t now_ns)
{
	if (!is_ending(s) ||
	    (s->deadline_ns != STREAM_SOCKET_NEVER && !s->nudges))
		return;
	s->nudges = 0;
	stream_socket_set_deadline(set, s, now_ns + CLOSE_NS);
}

/* Ends the wait for the peer's first FPDU, or for any bytes of the peer.  If
 * stream_set_close was called, the deadline becomes that of stream_set_close;
 * otherwise there is no deadline any more, unless the connection must end. */
static void end_wait(struct stream_set *set, struct stream_socket *s,
		     uint64_t now_ns)
{
	bool was_late = s->begins_late;

	s->begins_late = false;
	s->nudges = 0;
	if (s->is_closing && was_late) {
		stream_socket_set_deadline(set, s, now_ns + CLOSE_NS);
	} else if (!s->is_closing) {
		s->deadline_ns = STREAM_SOCKET_NEVER;
		limit_end(set, s, now_ns);
	}
}

/* Sends a WRITE without bytes, because the peer has sent nothing yet: perhaps
 * the peer has not noticed an FPDU that it has received. */
static void nudge_peer(struct stream_set *set, struct stream_socket *s,
		       struct engine *e, uint64_t now_ns)
{
	engine_stream_nudge(e, s->q);
	s->nudges--;
	s->nudge_ns *= 2;
	s->deadline_ns = STREAM_SOCKET_NEVER;
	if (s->nudges)
		stream_socket_set_deadline(set, s, now_ns + s->nudge_ns);
}

/* ---- the end of a connection ---- */

/* Ends a connection at once: it is broken, its deadline has passed, or the peer
 * has sent FIN while nothing was left to send. */
static void drop_socket(struct stream_set *set, struct engine *e,
			struct stream_socket *s, uint64_t now_ns)
{
	map_remove(&set->by_qpn, s->qpn);
	engine_stream_lost(e, s->q, now_ns);
	s->news(s->arg, HOST_STREAM_ENDED);
	stream_socket_free(set, s);
}

/* Reports the end of the connection, and lets it linger: the peer may still
 * send. */
static void end_socket(struct stream_set *set, struct stream_socket *s,
		       uint64_t now_ns)
{
	s->news(s->arg, HOST_STREAM_ENDED);
	stream_socket_linger(set, s, now_ns);
}

/* The peer has sent FIN, or has ended the session: fails the QP, and ends the
 * connection.  The peer may still read, so the bytes of s->left are sent before
 * the socket is closed: they may be of requests that have completed. */
static void take_fin(struct stream_set *set, struct engine *e,
		     struct stream_socket *s, uint64_t now_ns)
{
	if (!s->left_bytes) {
		drop_socket(set, e, s, now_ns);
		return;
	}
	s->gets_no_more = true;
	engine_stream_lost(e, s->q, now_ns);
	end_socket(set, s, now_ns);
}

static void put_back(struct list *kept, struct list *sockets)
{
	struct list *n;

	while ((n = list_pop_head(kept)))
		list_push_tail(sockets, n);
}

static void serve_all_lingering(struct stream_set *set)
{
	struct list kept = {&kept, &kept}, *n;

	while ((n = list_pop_head(&set->lingering)))
		if (stream_socket_serve_lingering(set, stream_socket_of(n)))
			list_push_tail(&kept, n);
		else
			stream_socket_free(set, stream_socket_of(n));
	put_back(&kept, &set->lingering);
}

/* Sends once what each socket of a list has not taken.  Adds to full[], which
 * has *count entries, sockets that still have such bytes, while there is
 * room. */
static void drain_list(struct stream_set *set, struct list *sockets, int *full,
		       size_t *count)
{
	list_for_each (n, sockets) {
		struct stream_socket *s = stream_socket_of(n);

		if (!s->left_bytes || !fd_identity_holds(s->fd))
			continue;
		if (!stream_socket_send_left(set, s))
			stream_socket_cut(set, s);
		else if (s->left_bytes && *count < TCP_AWAIT_MAX)
			full[(*count)++] = s->fd;
	}
}

void stream_set_drain(struct stream_set *set)
{
	uint64_t end_ns = monotonic_ns() + DRAIN_NS;
	int full[TCP_AWAIT_MAX];
	size_t count;

	for (;;) {
		count = 0;
		drain_list(set, &set->open, full, &count);
		drain_list(set, &set->lingering, full, &count);
		if (!count || monotonic_ns() >= end_ns)
			return;
		tcp_await_room(full, count, DRAIN_MS);
	}
}

/* ---- sending ---- */

/* The engine has no more bytes for s now.  Ends the connection if the QP is
 * done with it.  Otherwise sends FIN, if stream_set_close was called and no
 * request or response is left to be sent. */
static void finish_socket(struct stream_set *set, struct engine *e,
			  struct stream_socket *s, uint64_t now_ns)
{
	if (engine_stream_is_over(s->q)) {
		end_socket(set, s, now_ns);
		return;
	}
	if (!s->is_closing || !engine_stream_is_drained(s->q))
		return;
	s->is_emptied = true;
	stream_socket_make_last(s);
	stream_socket_finish(set, s);
}

/* Returns how many bytes of s are sent at once. */
static uint32_t room_of(const struct stream_set *set,
			const struct stream_socket *s, const struct engine *e,
			uint64_t now_ns)
{
	return set->spare_count && !engine_stream_has_next(e)
		       ? stream_burst_room(&s->burst, now_ns)
		       : STREAM_SET_BYTES;
}

/* Sends FIN when the last bytes are sent, or ends the connection of a QP that
 * has failed since.  Requests that were posted since then wait for the end, at
 * which they are flushed; responses are not sent any more. */
static void send_end(struct stream_set *set, struct engine *e,
		     struct stream_socket *s, uint64_t now_ns)
{
	if (engine_stream_has_failed(s->q)) {
		engine_stream_end(e, s->q, now_ns);
		end_socket(set, s, now_ns);
	} else {
		stream_socket_finish(set, s);
	}
}

/* Sends `bytes` bytes of set->tx. */
static void put_bytes(struct stream_set *set, struct engine *e,
		      struct stream_socket *s, uint32_t bytes, uint64_t now_ns)
{
	if (!stream_socket_put(set, s, set->tx, bytes))
		stream_socket_cut(set, s);
	limit_end(set, s, now_ns);
	if (s->left_bytes)
		engine_stream_blocked(s->q);
	else if (engine_stream_is_over(s->q))
		finish_socket(set, e, s, now_ns);
	else if (s->is_closing)
		engine_stream_ready(e, s->q); /* the next call may send FIN */
}

/* Sends the next bytes of a QP.  False: there was nothing to send, or the
 * socket was full. */
static bool make_bytes(struct stream_set *set, struct engine *e,
		       struct stream_socket *s, uint64_t now_ns)
{
	uint32_t room = room_of(set, s, e, now_ns);
	uint32_t bytes = engine_stream_tx(e, s->q, set->tx, room, now_ns);

	if (!bytes) {
		finish_socket(set, e, s, now_ns);
		return false;
	}
	stream_burst_sent(&s->burst, bytes, room, now_ns);
	put_bytes(set, e, s, bytes, now_ns);
	return true;
}

/* As make_bytes.  False also if the connection has ended or is about to end. */
static bool send_fpdus(struct stream_set *set, struct engine *e,
		       struct stream_socket *s, uint64_t now_ns)
{
	bool any = false;

	if (!is_ours(s->fd, &s->checked_ns, now_ns)) {
		drop_socket(set, e, s, now_ns);
		return false;
	}
	limit_end(set, s, now_ns);
	if (s->is_emptied && !s->left_bytes)
		send_end(set, e, s, now_ns);
	else if (!s->left_bytes && !s->is_cut)
		any = make_bytes(set, e, s, now_ns);
	return any;
}

bool stream_set_send(struct stream_set *set, struct engine *e, uint64_t now_ns)
{
	struct ibt_qp *q;
	bool any = false;

	while ((q = engine_stream_next(e))) {
		struct stream_socket *s =
			map_find(&set->by_qpn, engine_qp_qpn(q));

		if (s)
			any |= send_fpdus(set, e, s, now_ns);
	}
	return any;
}

/* ---- receiving ---- */

/* Gives the engine the message that was received, and at most MESSAGES that
 * follow it in the socket.  Returns 1; 0: the peer has ended the session or the
 * association; -errno: the association is broken. */
static int64_t take_messages(struct stream_set *set, struct engine *e,
			     struct stream_socket *s, int64_t result,
			     uint64_t now_ns)
{
	for (int i = 0; i < MESSAGES; i++) {
		engine_stream_rx(e, s->q, set->rx, (uint32_t)result, now_ns);
		if (engine_stream_has_peer_ended(s->q))
			return 0;
		if (engine_stream_is_over(s->q))
			return 1; /* a message was refused */
		result = tcp_receive(s->fd, set->rx, STREAM_SET_BYTES);
		if (result <= 0)
			return result == -EAGAIN ? 1 : result;
	}
	engine_stream_rx(e, s->q, set->rx, (uint32_t)result, now_ns);
	set->has_more = true;
	return !engine_stream_has_peer_ended(s->q);
}

/* Gives the engine the bytes in set->rx, or ends the connection.  @result: the
 * result of the tcp_receive that wrote the bytes. */
static void take_bytes(struct stream_set *set, struct engine *e,
		       struct stream_socket *s, int64_t result, uint64_t now_ns)
{
	if (result > 0 && s->is_session)
		result = take_messages(set, e, s, result, now_ns);
	if (!result) {
		take_fin(set, e, s, now_ns);
		return;
	}
	if (result < 0) {
		drop_socket(set, e, s, now_ns);
		return;
	}
	if (!s->is_session)
		engine_stream_rx(e, s->q, set->rx, (uint32_t)result, now_ns);
	if (s->nudges)
		end_wait(set, s, now_ns);
	if (s->is_awaited && engine_stream_has_begun(s->q)) {
		s->is_awaited = false;
		end_wait(set, s, now_ns);
		s->news(s->arg, HOST_STREAM_READY);
	}
	if (engine_stream_is_over(s->q) && !s->left_bytes)
		end_socket(set, s, now_ns);
}

static int64_t read_socket(struct stream_set *set, struct stream_socket *s,
			   uint64_t now_ns)
{
	int64_t result = -EBADF;

	if (is_ours(s->fd, &s->checked_ns, now_ns))
		result = stream_socket_receive(set, s);
	set->has_more |= result == STREAM_SET_BYTES;
	return result;
}

/* Sends the bytes of s->left.  If the kernel refuses, the bytes that the peer
 * has sent before its end are still received. */
static void send_left(struct stream_set *set, struct engine *e,
		      struct stream_socket *s, uint64_t now_ns)
{
	if (!stream_socket_send_left(set, s)) {
		stream_socket_cut(set, s);
		limit_end(set, s, now_ns);
	}
	if (!s->left_bytes)
		engine_stream_ready(e, s->q);
}

/* Sends the bytes of s->left and receives.  True: bytes came, or the connection
 * has ended. */
static bool serve_socket(struct stream_set *set, struct engine *e,
			 struct stream_socket *s, uint64_t now_ns)
{
	int64_t result;

	if (s->left_bytes && is_ours(s->fd, &s->checked_ns, now_ns))
		send_left(set, e, s, now_ns);
	result = read_socket(set, s, now_ns);
	if (result == -EAGAIN)
		return false;
	take_bytes(set, e, s, result, now_ns);
	return true;
}

static bool is_small(const struct stream_set *set)
{
	return set->by_qpn.count <= FEW && !set->full &&
	       list_is_empty(&set->lingering);
}

/* Reads a socket.  True: it has bytes or has ended; the bytes stay in set->rx
 * for stream_set_receive. */
static bool look_at(struct stream_set *set, struct stream_socket *s,
		    uint64_t now_ns)
{
	int64_t result = read_socket(set, s, now_ns);

	if (result == -EAGAIN)
		return false;
	set->got = set->hot = s;
	set->got_result = result;
	set->vain_looks = 0;
	return true;
}

/* Reads the sockets in turn until one has bytes or has ended.  False: no socket
 * has. */
static bool look_in_turn(struct stream_set *set, uint64_t now_ns)
{
	set->has_more = false;
	for (uint32_t i = set->by_qpn.count; i; i--) {
		struct stream_socket *s = stream_socket_of(set->open.next);

		list_remove(&s->link);
		list_push_tail(&set->open, &s->link);
		if (look_at(set, s, now_ns))
			return true;
	}
	return false;
}

/* Reads only the socket that had bytes last. */
static bool look_at_hot(struct stream_set *set, uint64_t now_ns)
{
	set->has_more = false;
	if (look_at(set, set->hot, now_ns))
		return true;
	if (++set->vain_looks >= HOT_LOOKS)
		set->hot = NULL;
	return false;
}

/* Serves the sockets that epoll names. */
static bool receive_by_epoll(struct stream_set *set, struct engine *e,
			     uint64_t now_ns)
{
	struct epoll_event got[BATCH];
	bool any = false, lingers = false;
	int n;

	if (!is_ours(stream_socket_epoll(set), &set->checked_ns, now_ns))
		return false;
	n = epoll_wait(stream_socket_epoll(set), got, BATCH, 0);
	set->has_more = n == BATCH;
	for (int i = 0; i < n; i++) {
		struct stream_socket *s =
			map_find(&set->by_qpn, got[i].data.u32);

		if (s)
			any |= serve_socket(set, e, s, now_ns);
		lingers |= got[i].data.u32 == STREAM_SOCKET_LINGERS;
	}
	/* once for all events: these sockets have one number in the epoll set,
	 * and peers decide how many events there are */
	if (lingers)
		serve_all_lingering(set);
	return any;
}

bool stream_set_has_news(struct stream_set *set, uint64_t now_ns)
{
	/* If the set uses epoll, only stream_set_receive reads sockets. */
	if (set->got || !is_small(set))
		return true;
	return set->hot && ++set->looks % ALL_LOOKS ? look_at_hot(set, now_ns)
						    : look_in_turn(set, now_ns);
}

bool stream_set_receive(struct stream_set *set, struct engine *e,
			uint64_t now_ns)
{
	struct stream_socket *s;

	if (!set->got && !is_small(set))
		return receive_by_epoll(set, e, now_ns);
	if (!set->got && !look_in_turn(set, now_ns))
		return false;
	s = set->got;
	set->got = NULL;
	take_bytes(set, e, s, set->got_result, now_ns);
	return true;
}

/* ---- beginning, end and deadlines of a connection ---- */

/* Makes a spare for the connection that is about to open.  Without memory the
 * connections send less at once. */
static void add_spare(struct stream_set *set)
{
	uint8_t *spare;

	if (set->spares_made > set->buffers.reserved ||
	    set->spares_made == STREAM_SET_SPARES)
		return;
	spare = malloc(STREAM_BURST_BYTES);
	if (!spare)
		return;
	set->spares_made++;
	stream_socket_give_spare(set, spare);
}

/* Makes the buffers and the epoll set, if they do not exist yet.  Returns 0,
 * -ENOMEM, -EBADF (the program has closed the epoll set), or the -errno of
 * epoll_create1. */
static int prepare_set(struct stream_set *set)
{
	int fd;

	if (!set->rx)
		set->rx = malloc(STREAM_SET_BYTES);
	if (!set->tx)
		set->tx = malloc(STREAM_BURST_BYTES);
	add_spare(set);
	if (!set->rx || !set->tx)
		return -ENOMEM;
	/* The program may have closed the epoll set and reused the number. */
	if (stream_socket_epoll(set) >= 0)
		return fd_identity_holds(stream_socket_epoll(set)) ? 0 : -EBADF;
	fd = fd_identity_note(epoll_create1(EPOLL_CLOEXEC));
	if (fd < 0)
		return -errno;
	shared_store(&set->waits_on, (uint32_t)fd + 1);
	return 0;
}

int stream_set_open(struct stream_set *set, struct engine *e, struct ibt_qp *q,
		    const struct host_stream *hs, uint64_t now_ns)
{
	uint32_t qpn = engine_qp_qpn(q);
	struct stream_socket *s;
	int err = prepare_set(set);

	if (err)
		return err;
	s = stream_socket_new(set, q, qpn, hs);
	if (!s)
		return -ENOMEM;
	err = stream_socket_watch(set, s, EPOLL_CTL_ADD);
	err = err ? err : engine_stream_open(e, q, hs->config);
	if (err) {
		epoll_ctl(stream_socket_epoll(set), EPOLL_CTL_DEL, s->fd, NULL);
		map_remove(&set->by_qpn, qpn);
		stream_socket_free_memory(set, s);
		return err;
	}
	list_push_tail(&set->open, &s->link);
	fd_identity_mark(s->fd);
	s->is_session = engine_stream_is_session(q);
	if (!s->is_session) {
		tcp_set_nodelay(s->fd);
		s->capture = capture_stream_new(s->fd, hs);
	}
	engine_stream_peer(q, hs->peer);
	s->is_awaited = !engine_stream_has_begun(q);
	s->begins_late = s->is_awaited && !s->is_session &&
			 !hs->ready_within_ns && hs->begin_after_ns;
	if (s->begins_late)
		stream_socket_set_deadline(set, s, now_ns + hs->begin_after_ns);
	else if (s->is_awaited && hs->ready_within_ns)
		stream_socket_set_deadline(set, s,
					   now_ns + hs->ready_within_ns);
	if (!s->is_awaited && !s->is_session && hs->nudge_after_ns) {
		s->nudges = NUDGES;
		s->nudge_ns = hs->nudge_after_ns;
		stream_socket_set_deadline(set, s, now_ns + s->nudge_ns);
	}
	return 0;
}

/* Gives the engine the messages or bytes that came before stream_set_open. */
static void give_early(struct stream_socket *s, struct engine *e,
		       struct ibt_qp *q, const struct host_stream *hs,
		       uint64_t now_ns)
{
	uint32_t at = 0, bytes;

	while (hs->early_bytes - at > sizeof(bytes)) {
		memcpy(&bytes, hs->early + at, sizeof(bytes));
		at += (uint32_t)sizeof(bytes);
		if (s->capture)
			capture_stream_received(s->capture, hs->early + at,
						bytes);
		engine_stream_rx(e, q, hs->early + at, bytes, now_ns);
		at += bytes;
	}
}

void stream_set_begin(struct stream_set *set, struct engine *e,
		      struct ibt_qp *q, const struct host_stream *hs,
		      uint64_t now_ns)
{
	struct stream_socket *s = map_find(&set->by_qpn, engine_qp_qpn(q));

	/* If the connection is broken, the next receive finds that. */
	if (hs->first_bytes)
		stream_socket_put(set, s, hs->first, hs->first_bytes);
	give_early(s, e, q, hs, now_ns);
}

void stream_set_cancel(struct stream_set *set, uint32_t qpn)
{
	struct stream_socket *s = map_find(&set->by_qpn, qpn);

	epoll_ctl(stream_socket_epoll(set), EPOLL_CTL_DEL, s->fd, NULL);
	s->fd = -1;
	map_remove(&set->by_qpn, qpn);
	stream_socket_free(set, s);
}

void stream_set_close(struct stream_set *set, struct engine *e, uint32_t qpn,
		      const void *arg, uint64_t now_ns)
{
	struct stream_socket *s = map_find(&set->by_qpn, qpn);

	if (!s || s->arg != arg || s->is_closing)
		return;
	s->is_closing = true;
	s->nudges = 0;
	/* If begins_late, posted requests wait, and must be sent before the
	 * end: end_wait sets the deadline when they may be sent. */
	if (!s->begins_late)
		stream_socket_set_deadline(set, s, now_ns + CLOSE_NS);
	engine_stream_ready(e, s->q);
}

void stream_set_drop(struct stream_set *set, struct engine *e, uint32_t qpn,
		     uint64_t now_ns)
{
	struct stream_socket *s = map_find(&set->by_qpn, qpn);

	if (!s)
		return;
	engine_stream_end(e, s->q, now_ns);
	end_socket(set, s, now_ns);
}

bool stream_set_abort(struct stream_set *set, uint32_t qpn, const void *arg,
		      uint64_t now_ns)
{
	struct stream_socket *s = map_find(&set->by_qpn, qpn);

	if (!s || s->arg != arg)
		return false;
	stream_socket_linger(set, s, now_ns);
	return true;
}

/* Handles each connection of the list whose deadline has passed: ends its wait
 * for the peer's first FPDU, nudges the peer, or ends the connection.  Lowers
 * set->due_ns to the earliest deadline of the connections that remain. */
static void end_overdue(struct stream_set *set, struct list *sockets,
			struct engine *e, uint64_t now_ns)
{
	struct list kept = {&kept, &kept}, *n;

	while ((n = list_pop_head(sockets))) {
		struct stream_socket *s = stream_socket_of(n);

		if (s->deadline_ns <= now_ns && s->begins_late) {
			end_wait(set, s, now_ns);
			engine_stream_begin(e, s->q);
		}
		if (s->deadline_ns <= now_ns && s->nudges)
			nudge_peer(set, s, e, now_ns);
		if (s->deadline_ns > now_ns) {
			list_push_tail(&kept, n);
			set->due_ns = bits_min_u64(set->due_ns, s->deadline_ns);
		} else if (s->q) {
			drop_socket(set, e, s, now_ns);
		} else {
			stream_socket_free(set, s);
		}
	}
	put_back(&kept, sockets);
}

void stream_set_tick(struct stream_set *set, struct engine *e, uint64_t now_ns)
{
	if (now_ns < set->due_ns)
		return;
	set->due_ns = STREAM_SOCKET_NEVER;
	end_overdue(set, &set->open, e, now_ns);
	end_overdue(set, &set->lingering, e, now_ns);
	/* Each look is at all connections.  With a look for each deadline, a
	 * thousand connections that began one after the other would cost a
	 * thousand looks at a thousand connections. */
	if (set->due_ns < now_ns + LATE_NS)
		set->due_ns = now_ns + LATE_NS;
}
