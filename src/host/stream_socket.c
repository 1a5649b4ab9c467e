/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/stream_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "host/capture_stream.h"
#include "util/bits.h"
#include "util/fd_identity.h"
#include "wire/tcp.h"

#define LINGER_NS 5000000000 /* how long a connection may linger */

int stream_socket_watch(struct stream_set *set, struct stream_socket *s,
			int how)
{
	/* After the peer's FIN the socket is readable for ever. */
	struct epoll_event ev = {.events = s->gets_no_more ? 0 : EPOLLIN};

	ev.data.u32 = s->q ? s->qpn : STREAM_SOCKET_LINGERS;
	if (s->left_bytes)
		ev.events |= EPOLLOUT;
	return epoll_ctl(stream_socket_epoll(set), how, s->fd, &ev) ? -errno
								    : 0;
}

void stream_socket_set_deadline(struct stream_set *set, struct stream_socket *s,
				uint64_t deadline_ns)
{
	s->deadline_ns = deadline_ns;
	set->due_ns = bits_min_u64(set->due_ns, deadline_ns);
}

void stream_socket_give_spare(struct stream_set *set, uint8_t *spare)
{
	set->spares[set->spare_count++] = spare;
}

/* Lets s keep set->tx, in which `bytes` lie; a spare becomes set->tx. */
static void keep_tx(struct stream_set *set, struct stream_socket *s,
		    const uint8_t *bytes)
{
	s->keeps_tx = true;
	s->left = set->tx;
	s->left_at = (uint32_t)(bytes - set->tx);
	set->tx = set->spares[--set->spare_count];
}

static void copy_left(struct stream_set *set, struct stream_socket *s,
		      const uint8_t *bytes, uint32_t count)
{
	s->left = stream_buffer_take(&set->buffers);
	memcpy(s->left, bytes, count);
	s->left_at = 0;
}

/* Keeps bytes that the socket has not taken. */
static void keep_bytes(struct stream_set *set, struct stream_socket *s,
		       const uint8_t *bytes, uint32_t count)
{
	if (count > STREAM_BUFFER_BYTES)
		keep_tx(set, s, bytes);
	else
		copy_left(set, s, bytes, count);
	s->left_bytes = count;
	set->full++;
	stream_socket_watch(set, s, EPOLL_CTL_MOD);
}

/* Sends and captures bytes.  Returns what tcp_send returns. */
static ssize_t send_bytes(struct stream_socket *s, const uint8_t *bytes,
			  uint32_t count)
{
	ssize_t n = tcp_send(s->fd, bytes, count);

	if (s->capture)
		capture_stream_sent(s->capture, bytes, n);
	return n;
}

bool stream_socket_put(struct stream_set *set, struct stream_socket *s,
		       const uint8_t *bytes, uint32_t count)
{
	ssize_t n = send_bytes(s, bytes, count);

	if (n < 0)
		return false;
	if ((uint32_t)n < count)
		keep_bytes(set, s, bytes + n, count - (uint32_t)n);
	return true;
}

static void give_buffer(struct stream_set *set, struct stream_socket *s)
{
	if (s->keeps_tx)
		stream_socket_give_spare(set, s->left);
	else if (s->left)
		stream_buffer_give(&set->buffers, s->left);
	s->keeps_tx = false;
	s->left = NULL;
}

void stream_socket_free_memory(struct stream_set *set, struct stream_socket *s)
{
	give_buffer(set, s);
	stream_buffer_release(&set->buffers);
	capture_stream_free(s->capture);
	free(s);
}

int64_t stream_socket_receive(struct stream_set *set, struct stream_socket *s)
{
	ssize_t n = tcp_receive(s->fd, set->rx, STREAM_SET_BYTES);

	if (s->capture)
		capture_stream_received(s->capture, set->rx, n);
	return n;
}

bool stream_socket_send_left(struct stream_set *set, struct stream_socket *s)
{
	ssize_t n = send_bytes(s, s->left + s->left_at, s->left_bytes);

	if (n < 0)
		return false;
	s->left_at += (uint32_t)n;
	s->left_bytes -= (uint32_t)n;
	if (s->left_bytes)
		return true;
	set->full--;
	give_buffer(set, s);
	stream_socket_watch(set, s, EPOLL_CTL_MOD);
	return true;
}

void stream_socket_cut(struct stream_set *set, struct stream_socket *s)
{
	s->is_cut = true;
	if (!s->left_bytes)
		return;
	s->left_bytes = 0;
	set->full--;
	give_buffer(set, s);
	stream_socket_watch(set, s, EPOLL_CTL_MOD);
}

/* Clears those of set->got and set->hot that point to s, since no QP gets bytes
 * from s any more. */
static void forget_socket(struct stream_set *set, const struct stream_socket *s)
{
	if (set->got == s)
		set->got = NULL;
	if (set->hot == s)
		set->hot = NULL;
}

void stream_socket_free(struct stream_set *set, struct stream_socket *s)
{
	bool is_ours = fd_identity_holds(s->fd);

	forget_socket(set, s);
	if (s->left_bytes)
		set->full--;
	list_remove(&s->link);
	if (is_ours) {
		/* close would leave the socket in the epoll set while a child
		 * of fork has a copy of the descriptor, and the set would
		 * report it for ever. */
		epoll_ctl(stream_socket_epoll(set), EPOLL_CTL_DEL, s->fd, NULL);
		tcp_end(s->fd);
		if (s->capture)
			capture_stream_finished(s->capture);
	}
	fd_identity_close_if(s->fd, is_ours);
	stream_socket_free_memory(set, s);
}

void stream_socket_make_last(struct stream_socket *s)
{
	if (s->is_session && !s->has_finished && !s->last.bytes)
		s->last.bytes = engine_stream_finish(s->q, s->last.message);
}

void stream_socket_finish(struct stream_set *set, struct stream_socket *s)
{
	if (s->left_bytes || s->has_finished || !fd_identity_holds(s->fd))
		return;
	if (s->last.bytes) {
		uint32_t bytes = s->last.bytes;

		s->last.bytes = 0;
		/* If the connection is broken, the next receive finds that. */
		if (!stream_socket_put(set, s, s->last.message, bytes) ||
		    s->left_bytes)
			return;
	}
	tcp_finish(s->fd);
	if (s->capture)
		capture_stream_finished(s->capture);
	s->has_finished = true;
}

void stream_socket_linger(struct stream_set *set, struct stream_socket *s,
			  uint64_t now_ns)
{
	map_remove(&set->by_qpn, s->qpn);
	stream_socket_make_last(s);
	s->q = NULL;
	s->begins_late = false;
	s->nudges = 0;
	forget_socket(set, s);
	stream_socket_finish(set, s);
	list_remove(&s->link);
	list_push_tail(&set->lingering, &s->link);
	stream_socket_watch(set, s, EPOLL_CTL_MOD);
	stream_socket_set_deadline(set, s, now_ns + LINGER_NS);
}

/* Reads and drops the peer's bytes.  False: the connection is broken, or
 * nothing is left to send or to read. */
static bool read_lingering(struct stream_set *set, struct stream_socket *s)
{
	int64_t got = s->gets_no_more ? 0 : stream_socket_receive(set, s);

	if (got)
		return got > 0 || got == -EAGAIN;
	if (!s->left_bytes)
		return false;
	if (!s->gets_no_more) {
		s->gets_no_more = true;
		stream_socket_watch(set, s, EPOLL_CTL_MOD);
	}
	return true;
}

bool stream_socket_serve_lingering(struct stream_set *set,
				   struct stream_socket *s)
{
	if (!fd_identity_holds(s->fd) ||
	    (s->left_bytes && !stream_socket_send_left(set, s)))
		return false;
	stream_socket_finish(set, s);
	return read_lingering(set, s);
}

struct stream_socket *stream_socket_new(struct stream_set *set,
					struct ibt_qp *q, uint32_t qpn,
					const struct host_stream *hs)
{
	struct stream_socket *s = calloc(1, sizeof(*s));

	if (!s || !stream_buffer_reserve(&set->buffers)) {
		free(s);
		return NULL;
	}
	if (map_add(&set->by_qpn, qpn, s)) {
		stream_socket_free_memory(set, s);
		return NULL;
	}
	list_init(&s->link);
	s->q = q;
	s->qpn = qpn;
	s->fd = hs->fd;
	s->deadline_ns = STREAM_SOCKET_NEVER;
	s->news = hs->news;
	s->arg = hs->arg;
	return s;
}
