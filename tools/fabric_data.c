/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_data.h"

#include "fabric/proto.h"
#include "util/bits.h"
#include "util/monotonic.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READS = 64,  /* packets of one socket in one turn */
	REST = 1024, /* the same, of a program that has ended */
};

#define OF_REST(l) CONTAINER_OF(l, struct fabric_data_socket, rest)

void fabric_data_init(struct fabric_data_socket *d, struct connection *c)
{
	*d = (struct fabric_data_socket){.watch = {.connection = c,
						   .kind = FABRIC_WATCH_DATA,
						   .fd = -1}};
	list_init(&d->rest);
}

int fabric_data_open(struct fabric_data *f, struct fabric_data_socket *d,
		     int fd, struct data_end *end)
{
	int err;

	d->watch.fd = fd;
	d->end = end;
	d->reads = true;
	d->is_full = false;
	err = fabric_watch_add(f->epoll, &d->watch, EPOLLIN);
	if (err)
		fabric_data_close(f, d);
	return err;
}

void fabric_data_close(struct fabric_data *f, struct fabric_data_socket *d)
{
	if (!d->end)
		return;
	f->has_closed = true;
	close(d->watch.fd);
	d->watch.fd = -1;
	list_remove(&d->rest);
	data_close(d->end);
	d->end = NULL;
}

/* Watches the socket for reading only while its data end may send.  Otherwise
 * epoll would report the unread socket again and again. */
static void watch_data(const struct fabric_data *f,
		       struct fabric_data_socket *d)
{
	fabric_watch_change(f->epoll, &d->watch,
			    (d->reads ? EPOLLIN : 0) |
				    (d->is_full ? EPOLLOUT : 0));
}

/* Sends the next packet of the socket.  Returns 1; 0: the program has closed
 * its socket, which is empty; or -1: the socket has no packet. */
static int send_next(const struct fabric_data *f,
		     const struct fabric_data_socket *d)
{
	ssize_t n =
		recv(d->watch.fd, f->buffer, f->size, MSG_DONTWAIT | MSG_TRUNC);

	/* the first call may report messages that the program has not read */
	if (n < 0 && errno == ECONNRESET)
		return 1;
	if (n <= 0)
		return (int)n;
	/* a packet that data_send refuses is dropped: an adapter would not send
	 * it */
	data_send(d->end, f->buffer, (size_t)n);
	return 1;
}

/* Sends packets of a program that has ended, as many as the end may send, but
 * at most REST, since another process may fill the socket for ever; the next
 * turn goes on.  Closes the socket if all are sent. */
static void send_rest(struct fabric_data *f, struct fabric_data_socket *d)
{
	for (int i = 0; i < REST && data_may_send(d->end); i++)
		if (send_next(f, d) <= 0) {
			fabric_data_close(f, d);
			return;
		}
}

void fabric_data_leave(struct fabric_data *f, struct fabric_data_socket *d)
{
	if (!d->end || list_is_linked(&d->rest))
		return;
	/* epoll would report the end of the program again and again */
	fabric_watch_remove(f->epoll, &d->watch);
	data_deafen(d->end);
	d->rest_ms = monotonic_ms() + FABRIC_DATA_REST_MS;
	list_push_tail(&f->rests, &d->rest);
	send_rest(f, d);
}

static void read_data(struct fabric_data *f, struct fabric_data_socket *d)
{
	for (int i = 0; i < READS; i++) {
		int got;

		if (!data_may_send(d->end)) {
			d->reads = false;
			watch_data(f, d);
			return;
		}
		got = send_next(f, d);
		if (!got)
			fabric_data_close(f, d);
		if (got <= 0)
			return;
	}
}

void fabric_data_serve(struct fabric_data *f, struct fabric_data_socket *d,
		       uint32_t events)
{
	if ((events & EPOLLOUT) && d->is_full) {
		d->is_full = false;
		watch_data(f, d);
		data_unpause(d->end);
	}
	if (d->reads && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		read_data(f, d);
	else if (events & (EPOLLHUP | EPOLLERR))
		fabric_data_leave(f, d);
}

static bool send_data(struct fabric_data_socket *d, const void *message,
		      size_t bytes)
{
	ssize_t n =
		send(d->watch.fd, message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0 || errno != EAGAIN)
		return true;
	d->is_full = true;
	return false;
}

/* Sends a program the changes of its port and the packets for it, until none is
 * left or the socket is full. */
static void flush_data(const struct fabric_data *f, struct data_end *end)
{
	struct fabric_data_socket *d = data_owner(end);
	struct fabric_proto_news news = {.changes = data_changes(end)};
	const uint8_t *packet;
	size_t bytes;

	if (news.changes && send_data(d, &news, sizeof(news)))
		data_changes_fetched(end);
	while (!d->is_full && (packet = data_fetch(end, &bytes)))
		if (send_data(d, packet, bytes))
			data_fetched(end);
	if (!d->is_full)
		return;
	data_pause(end);
	watch_data(f, d);
}

static void resume_data(struct fabric_data *f, struct data_end *end)
{
	struct fabric_data_socket *d = data_owner(end);

	/* fabric_data_turn sends the rest */
	if (list_is_linked(&d->rest))
		return;
	d->reads = true;
	watch_data(f, d);
}

void fabric_data_turn(struct fabric_data *f, uint64_t now_ms)
{
	struct data_end *end;

	while ((end = data_ready(f->fabric)))
		flush_data(f, end);
	while ((end = data_resumed(f->fabric)))
		resume_data(f, end);
	list_for_each_safe (l, &f->rests)
		if (OF_REST(l)->rest_ms <= now_ms)
			fabric_data_close(f, OF_REST(l));
		else
			send_rest(f, OF_REST(l));
}

uint64_t fabric_data_deadline(const struct fabric_data *f)
{
	uint64_t first = FABRIC_NEVER;

	list_for_each (l, &f->rests)
		if (data_may_send(OF_REST(l)->end))
			return 0;
		else
			first = bits_min_u64(first, OF_REST(l)->rest_ms);
	return first;
}
