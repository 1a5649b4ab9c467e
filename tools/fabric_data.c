/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_data.h"

#include "fabric/fabric_client.h"
#include "fabric/proto.h"
#include "hdr/lrh.h"
#include "util/bits.h"
#include "util/monotonic.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	READS = 64, /* messages of one socket in one turn */
	/* Messages of the socket, or packets of the ring, in one turn, of a
	 * program that has ended. */
	REST = 1024,
	/* Packets of one ring in one turn.  They are so few that the receiver
	 * finds them in the core's cache, if it runs on the same core. */
	PACKETS = 16,
	/* the most looks in a row at an empty ring, while other rings have
	 * packets */
	VAIN = 64,
	/* Bytes of one socket in one turn, after which no message is read. */
	READ_BYTES = 512 << 10,
};

#define OF_REST(l)   CONTAINER_OF(l, struct fabric_data_socket, rest)
#define OF_BUSY(l)   CONTAINER_OF(l, struct fabric_data_socket, busy)
#define OF_OWED(l)   CONTAINER_OF(l, struct fabric_data_socket, owed)
#define OF_LENDER(l) CONTAINER_OF(l, struct fabric_data_socket, lender)

void fabric_data_init_all(struct fabric_data *f)
{
	list_init(&f->rests);
	list_init(&f->busy);
	list_init(&f->rings);
	list_init(&f->owed);
	list_init(&f->lenders);
}

void fabric_data_init(struct fabric_data_socket *d, struct connection *c)
{
	*d = (struct fabric_data_socket){.watch = {.connection = c,
						   .kind = FABRIC_WATCH_DATA,
						   .fd = -1}};
	list_init(&d->rest);
	list_init(&d->busy);
	list_init(&d->owed);
	list_init(&d->lender);
}

int fabric_data_open(struct fabric_data *f, struct fabric_data_socket *d,
		     int fd, struct data_end *end)
{
	int err;

	d->watch.fd = fd;
	d->end = end;
	d->reads = true;
	d->is_full = false;
	d->uses_ring = d->is_ring_full = d->owes_wake = false;
	d->burst = fabric_client_burst(fd);
	err = fabric_watch_add(f->epoll, &d->watch, EPOLLIN);
	if (err)
		fabric_data_close(f, d);
	return err;
}

/* Gives back the room of the packets that were taken out of the rings.  First
 * copies the bytes that the fabric still uses there. */
static void release_rings(struct fabric_data *f)
{
	struct list *l;

	if (list_is_empty(&f->lenders))
		return;
	data_settle(f->fabric);
	while ((l = list_pop_head(&f->lenders)))
		if (packet_ring_release(&OF_LENDER(l)->ring.in))
			fabric_ring_tell_room(&OF_LENDER(l)->ring);
}

void fabric_data_close(struct fabric_data *f, struct fabric_data_socket *d)
{
	if (!d->end)
		return;
	release_rings(f);
	f->has_closed = true;
	/* The socket is closed before fabric_ring_close frees the memory of the
	 * rings: a program that finds zeroes there also finds the end of the
	 * socket. */
	close(d->watch.fd);
	d->watch.fd = -1;
	list_remove(&d->rest);
	list_remove(&d->busy);
	list_remove(&d->owed);
	fabric_ring_close(&d->ring);
	data_close(d->end);
	d->end = NULL;
}

/* Watches the socket for reading only while its data end may send: otherwise
 * epoll would again and again report a socket that nobody reads.  The socket of
 * a data end that uses rings is always read. */
static void watch_data(const struct fabric_data *f,
		       struct fabric_data_socket *d)
{
	bool reads = d->reads || d->uses_ring;

	fabric_watch_change(f->epoll, &d->watch,
			    (reads ? EPOLLIN : 0) |
				    (d->is_full ? EPOLLOUT : 0));
}

/* Sends the packets of a message, also if they are more than the end may send
 * (data_may_send).  A packet that data_send refuses is dropped: an adapter
 * would not send it, or the fabric has no room for it.  The rest of the message
 * is dropped, too, after FABRIC_PROTO_BURST_PACKETS packets or if it begins
 * with no whole packet. */
static void send_packets(struct data_end *end, const uint8_t *bytes, size_t n)
{
	for (int i = 0; n && i < FABRIC_PROTO_BURST_PACKETS; i++) {
		size_t packet = lrh_first(bytes, n);

		if (!packet)
			return;
		data_send(end, bytes, packet);
		bytes += packet;
		n -= packet;
	}
}

/* Looks at the ring of d in each turn from now on. */
static void keep_busy(struct fabric_data *f, struct fabric_data_socket *d)
{
	d->in_vain = 0;
	if (!list_is_linked(&d->busy))
		list_push_tail(&f->busy, &d->busy);
}

/* Does the message say that the program uses its ring, or has put packets into
 * it, or has made room? */
static bool is_wake(const uint8_t *bytes, size_t n)
{
	struct fabric_proto_news news = {0};

	if (n == sizeof(news))
		memcpy(&news, bytes, sizeof(news));
	return news.changes == DATA_RING;
}

/* Looks at the rings of a program that has sent a message: the program may have
 * put packets into the one, and may have made room in the other. */
static void look_at_rings(struct fabric_data *f, struct fabric_data_socket *d)
{
	/* if the data end may not send now, resume_data looks at its ring later
	 */
	if (d->reads)
		keep_busy(f, d);
	if (d->is_ring_full) {
		d->is_ring_full = false;
		data_unpause(d->end);
	}
}

/* Handles a message of packets, a packet that the program has refused, or a
 * message about the rings.  After the first message about the rings, the data
 * end uses rings, and packets in messages are dropped.  If the data end uses
 * rings, looks at them after a message of any kind: a program whose socket is
 * full, for example of packets that it has refused, sends no message about its
 * rings. */
static void take_message(struct fabric_data *f, struct fabric_data_socket *d,
			 uint8_t *bytes, size_t n)
{
	if (d->ring.memory && is_wake(bytes, n)) {
		d->uses_ring = true;
	} else if ((bytes[0] & FABRIC_PROTO_REFUSED) == FABRIC_PROTO_REFUSED) {
		bytes[0] &= (uint8_t)~FABRIC_PROTO_REFUSED;
		data_refused(d->end, bytes, n);
	} else if (!d->uses_ring) {
		send_packets(d->end, bytes, n);
	}
	if (d->uses_ring)
		look_at_rings(f, d);
}

/* recv has returned 0.  Has the program closed the socket, and are all messages
 * with bytes read?  False: the message was empty. */
static bool has_ended(int fd)
{
	struct pollfd end = {.fd = fd, .events = POLLRDHUP};
	int unread = 0;

	return poll(&end, 1, 0) == 1 &&
	       (ioctl(fd, FIONREAD, &unread) || !unread);
}

/* Takes the socket's next message (take_message); drops a message that is
 * longer than FABRIC_PROTO_BURST_BYTES or the buffer.  Returns how many bytes
 * were read; 1 also for an empty message, and for the ECONNRESET of a program
 * that has left messages unread; 0: the program has closed its end and all
 * messages were read; or -1: there is no message now, or recv has failed. */
static int read_next(struct fabric_data *f, struct fabric_data_socket *d)
{
	size_t room = bits_min_u64(f->size, FABRIC_PROTO_BURST_BYTES);
	ssize_t n =
		recv(d->watch.fd, f->buffer, room, MSG_DONTWAIT | MSG_TRUNC);

	/* after the program's end the first recv fails with ECONNRESET if the
	 * program has left messages unread */
	if (n < 0 && errno == ECONNRESET)
		return 1;
	if (!n)
		return !has_ended(d->watch.fd);
	if (n < 0)
		return -1;
	/* MSG_TRUNC: n is the length of the whole message */
	if ((size_t)n <= room)
		take_message(f, d, f->buffer, (size_t)n);
	return (int)bits_min_u64((uint64_t)n, room);
}

int fabric_data_ring(struct fabric_data *f, struct fabric_data_socket *d,
		     int pid, int room_fd)
{
	return fabric_ring_open(&d->ring, &f->rings, pid, room_fd);
}

/* Sends up to `most` packets of d's ring, as many as the end may send;
 * release_rings gives back their room.  Returns how many; -1: the program has
 * written a wrong word, so the ring is broken. */
static int send_ring(struct fabric_data *f, struct fabric_data_socket *d,
		     int most)
{
	struct packet_ring_in *in = &d->ring.in;
	const uint8_t *bytes;
	int count = 0;
	size_t n;

	while (count < most && data_may_send(d->end) &&
	       (bytes = packet_ring_next(in, LRH_FRAME_MAX, &n))) {
		data_lend(d->end, bytes, n);
		count++;
	}
	if (count && !list_is_linked(&d->lender))
		list_push_tail(&f->lenders, &d->lender);
	return in->is_broken ? -1 : count;
}

/* Sends some of the packets that an ended program has left.  Returns how many
 * packets (ring) or bytes (socket) were read; 0 or -1: nothing is left. */
static int send_some(struct fabric_data *f, struct fabric_data_socket *d)
{
	return d->uses_ring ? send_ring(f, d, 1) : read_next(f, d);
}

/* Sends the packets that an ended program has left in its socket or its ring,
 * as long as the end may send.  Stops after REST messages or packets, or
 * READ_BYTES bytes, since another process that has the socket or the ring may
 * fill it for ever; the next turn sends more.  Closes the socket once nothing
 * is left. */
static void send_rest(struct fabric_data *f, struct fabric_data_socket *d)
{
	int got;

	for (int i = 0, bytes = 0;
	     i < REST && bytes < READ_BYTES && data_may_send(d->end); i++) {
		got = send_some(f, d);
		if (got <= 0) {
			fabric_data_close(f, d);
			return;
		}
		bytes += got;
	}
}

void fabric_data_leave(struct fabric_data *f, struct fabric_data_socket *d)
{
	if (!d->end || list_is_linked(&d->rest))
		return;
	/* epoll would report the end of the program again and again */
	fabric_watch_remove(f->epoll, &d->watch);
	list_remove(&d->busy);
	data_deafen(d->end);
	d->rest_ms = monotonic_ms() + FABRIC_DATA_REST_MS;
	list_push_tail(&f->rests, &d->rest);
	send_rest(f, d);
}

static void read_data(struct fabric_data *f, struct fabric_data_socket *d)
{
	int got;

	for (int i = 0, bytes = 0; i < READS && bytes < READ_BYTES; i++) {
		if (!d->uses_ring && !data_may_send(d->end)) {
			d->reads = false;
			watch_data(f, d);
			return;
		}
		got = read_next(f, d);
		/* a program with a ring may have left packets there */
		if (!got && d->uses_ring)
			fabric_data_leave(f, d);
		else if (!got)
			fabric_data_close(f, d);
		if (got <= 0)
			return;
		bytes += got;
	}
}

/* Has the kernel no memory for a message now? */
static bool is_shortage(int err)
{
	return err == ENOBUFS || err == ENOMEM;
}

/* Wakes a program that waits for packets or room.  If the socket is full, the
 * program finds messages there anyway.  If the kernel has no memory for the
 * message now, the wake-up is sent later (owes_wake): otherwise the program
 * would wait for ever. */
static void wake_program(struct fabric_data_socket *d)
{
	const struct fabric_proto_news news = {.changes = DATA_RING};
	ssize_t n = send(d->watch.fd, &news, sizeof(news),
			 MSG_DONTWAIT | MSG_NOSIGNAL);

	d->owes_wake = n < 0 && is_shortage(errno);
	d->is_full |= d->owes_wake;
}

/* The socket takes messages again. */
static void resume_socket(struct fabric_data *f, struct fabric_data_socket *d)
{
	d->is_full = false;
	if (d->owes_wake)
		wake_program(d);
	if (d->is_full)
		return; /* epoll reports the socket again */
	watch_data(f, d);
	data_unpause(d->end);
}

void fabric_data_serve(struct fabric_data *f, struct fabric_data_socket *d,
		       uint32_t events)
{
	if ((events & EPOLLOUT) && d->is_full)
		resume_socket(f, d);
	if ((d->reads || d->uses_ring) &&
	    (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		read_data(f, d);
	else if (events & (EPOLLHUP | EPOLLERR))
		fabric_data_leave(f, d);
}

/* Sends a message of these parts.  Returns 0, also if the program has ended;
 * -EAGAIN: the socket is full, or the kernel has no memory for the message now;
 * -EMSGSIZE: the socket takes no message of this length. */
static int send_data(struct fabric_data_socket *d, struct iovec *parts,
		     size_t count)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t n = sendmsg(d->watch.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	int err = n < 0 ? errno : 0;

	d->is_full = err == EAGAIN || is_shortage(err);
	if (d->is_full)
		return -EAGAIN;
	return err == EMSGSIZE ? -EMSGSIZE : 0;
}

/* Sends a program the changes of its port.  Sends nothing while the socket is
 * full: only resume_socket may clear is_full, since it also ends the watch for
 * EPOLLOUT.  Otherwise epoll would again and again report a socket for which
 * fabric_data_serve does nothing, and a wake-up that is owed would never be
 * sent. */
static void flush_news(struct fabric_data_socket *d, struct data_end *end)
{
	struct fabric_proto_news news = {.changes = data_changes(end)};
	struct iovec part = {&news, sizeof(news)};

	if (news.changes && !d->is_full && send_data(d, &part, 1) != -EAGAIN)
		data_changes_fetched(end);
}

/* Sends a program a message of the oldest packets for it.  If the socket takes
 * no message of this length, counts the packets as lost.  False: there are no
 * packets, or the socket is full. */
static bool flush_packets(struct fabric_data_socket *d, struct data_end *end)
{
	struct data_part packets[FABRIC_PROTO_BURST_PACKETS];
	struct iovec parts[FABRIC_PROTO_BURST_PACKETS];
	size_t count =
		data_gather(end, packets, FABRIC_PROTO_BURST_PACKETS, d->burst);
	int err;

	for (size_t i = 0; i < count; i++)
		parts[i] = (struct iovec){(void *)(uintptr_t)packets[i].bytes,
					  packets[i].n};
	err = count ? send_data(d, parts, count) : -EAGAIN;
	if (err == -EAGAIN)
		return false;
	while (count--)
		if (err)
			data_lost(end);
		else
			data_fetched(end);
	return true;
}

/* Returns room for a packet in the ring to a program.  NULL: there is no room,
 * and the program sends a message when it has made room; or the ring is broken.
 * Looks a second time after packet_ring_want_room: the program sends no message
 * about room that it made before that call.  *wakes: set if the program waits
 * for packets. */
static uint8_t *find_room(struct packet_ring_out *out, size_t n, bool *wakes)
{
	uint8_t *room = packet_ring_room(out, n);

	if (room)
		return room;
	*wakes |= packet_ring_publish(out);
	packet_ring_want_room(out);
	return packet_ring_room(out, n);
}

/* Puts the oldest packet for a program into its ring.  False: there is no
 * packet, or the ring is full or broken. */
static bool put_packet(struct fabric_data_socket *d, struct data_end *end,
		       bool *wakes)
{
	size_t n = data_length(end);
	uint8_t *room = n ? find_room(&d->ring.out, n, wakes) : NULL;

	d->is_ring_full = n && !room;
	if (!room)
		return false;
	data_copy(end, room);
	packet_ring_put(&d->ring.out, n);
	data_fetched(end);
	return true;
}

/* Puts the packets for a program into its ring, until none is left or the ring
 * is full.  fabric_data_wake wakes a program that waits for packets.  False:
 * the ring is broken. */
static bool flush_ring(struct fabric_data *f, struct fabric_data_socket *d,
		       struct data_end *end)
{
	bool wakes = false;

	while (put_packet(d, end, &wakes))
		;
	wakes |= packet_ring_publish(&d->ring.out);
	if (wakes && !list_is_linked(&d->owed))
		list_push_tail(&f->owed, &d->owed);
	if (d->is_ring_full)
		data_pause(end);
	return !d->ring.out.is_broken;
}

/* Gives the program nothing more until its socket takes messages again. */
static void await_socket(const struct fabric_data *f,
			 struct fabric_data_socket *d)
{
	data_pause(d->end);
	watch_data(f, d);
}

/* Sends a program the changes of its port and the packets for it, until none is
 * left, or the socket or the ring is full. */
static void flush_data(struct fabric_data *f, struct data_end *end)
{
	struct fabric_data_socket *d = data_owner(end);

	flush_news(d, end);
	if (d->uses_ring && !flush_ring(f, d, end)) {
		fabric_data_close(f, d);
		return;
	}
	while (!d->uses_ring && !d->is_full && flush_packets(d, end))
		;
	if (d->is_full)
		await_socket(f, d);
}

static void resume_data(struct fabric_data *f, struct data_end *end)
{
	struct fabric_data_socket *d = data_owner(end);

	/* the program has ended: fabric_data_turn calls send_rest */
	if (list_is_linked(&d->rest))
		return;
	d->reads = true;
	if (d->uses_ring)
		keep_busy(f, d);
	else
		watch_data(f, d);
}

/* Sends packets out of the ring of d, or closes d if the ring is broken.
 * Returns whether there were packets. */
static bool take_packets(struct fabric_data *f, struct fabric_data_socket *d)
{
	int count = send_ring(f, d, PACKETS);

	if (count < 0) {
		fabric_data_close(f, d);
		return false;
	}
	if (!data_may_send(d->end)) {
		d->reads = false; /* until resume_data */
		list_remove(&d->busy);
	}
	d->in_vain = count ? 0 : d->in_vain + 1;
	f->has_more |= count == PACKETS;
	return count > 0;
}

/* Asks the programs whose rings have been empty to wake this process, which
 * then does not look at these rings until take_message handles a message of the
 * program.  any: a ring had packets in this turn, so the process does not
 * sleep, and asks a program only if its ring was empty more than VAIN times in
 * a row. */
static void rest_from_rings(struct fabric_data *f, bool any)
{
	list_for_each_safe (l, &f->busy) {
		struct fabric_data_socket *d = OF_BUSY(l);

		if (d->in_vain > (any ? VAIN : 0) &&
		    packet_ring_idle(&d->ring.in))
			list_remove(&d->busy);
	}
}

bool fabric_data_take(struct fabric_data *f)
{
	bool any = false;

	f->has_more = false;
	list_for_each_safe (l, &f->busy)
		any |= take_packets(f, OF_BUSY(l));
	rest_from_rings(f, any);
	return any;
}

void fabric_data_wake(struct fabric_data *f)
{
	struct list *l;

	while ((l = list_pop_head(&f->owed))) {
		struct fabric_data_socket *d = OF_OWED(l);

		wake_program(d);
		if (d->is_full)
			await_socket(f, d);
	}
}

void fabric_data_turn(struct fabric_data *f, uint64_t now_ms)
{
	struct data_end *end;

	while ((end = data_ready(f->fabric)))
		flush_data(f, end);
	release_rings(f);
	if (!f->has_more)
		fabric_data_wake(f);
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

	if (!list_is_empty(&f->busy))
		return 0;
	list_for_each (l, &f->rests)
		if (data_may_send(OF_REST(l)->end))
			return 0;
		else
			first = bits_min_u64(first, OF_REST(l)->rest_ms);
	return first;
}
