/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * udp_stream sends messages over UDP, in packets whose headers are as long as
 * those of an RDMA WRITE.  The measured rate is the limit of RoCEv2 over a
 * socket of this machine.
 *
 *	  First		  Middle, Middle, ..., Last
 *	+----+----+-----+ +----+-----+ +----+-----+
 *	| 12 | 16 | p |4| | 12 | p |4| | 12 | p |4|	one sendmmsg,
 *	+----+----+-----+ +----+-----+ +----+-----+	two datagrams or more
 *	  alone		  cut by the kernel (UDP_SEGMENT)
 *
 * If a message is only one packet, each sendmmsg sends one datagram with as
 * many messages as fit, at most TRAIN, or with one message (-o).
 *
 * Sender and receiver compute a CRC of each packet; the receiver polls with
 * UDP_GRO and copies each payload to its place.  At most WINDOW packets are
 * outstanding: the receiver counts packets in a page that both processes share.
 *
 * -p: no packet has a RETH, the receiver copies no payload, and no CRC is
 * computed, but its 4 bytes are sent.  -o: one packet per call.  -k: the
 * receiver peeks at the first header, the kernel copies the payloads to their
 * places, and without -p the receiver computes the CRCs there.
 */
#include "raw.h"
#include "util/crc.h"

#include <errno.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define HEADER	 12	  /* bytes: a BTH */
#define EXTENDED 28	  /* bytes of a First packet's headers: BTH and RETH */
#define TRAILER	 4	  /* bytes: the ICRC */
#define DATAGRAM 65507	  /* most bytes of a UDP datagram over IPv4 */
#define SEGMENTS 128	  /* most segments of a datagram with UDP_SEGMENT */
#define WINDOW	 256	  /* packets */
#define TRAIN	 64	  /* most packets of one sendmmsg */
#define SILENCE	 20000000 /* ns; then missing packets count as lost */

/* The headers of a packet, in place of BTH and RETH.  first: 1 in a message's
 * first packet (without -p), else 0; offset: where the payload begins in the
 * message. */
struct header {
	uint32_t first, offset, spare, extended[4];
};

/* The page of both processes. */
struct shared {
	_Alignas(128) uint64_t taken;	     /* packets received */
	_Alignas(128) struct sockaddr_in at; /* the receiver's address */
	int ready;			     /* `at` is set */
};

struct sender {
	const struct raw_options *o;
	struct shared *shared;
	pid_t receiver;
	int fd;
	char *payload;
	/* Numbers of packets.  sent: all that were sent; lost: those that count
	 * as lost; seen: the receiver's count when it last changed. */
	uint64_t sent, lost, seen;
	int64_t seen_ns; /* the time of that change; 0: none */
	struct header headers[TRAIN];
	uint32_t trailers[TRAIN];
	struct iovec iov[3 * TRAIN];
	struct mmsghdr msgs[TRAIN];
	char control[TRAIN][CMSG_SPACE(sizeof(uint16_t))];
};

static void place_payload(const struct raw_options *o, char *to,
			  const char *packet, size_t len)
{
	struct header h;
	uint32_t crc;
	size_t skip, bytes;

	if (o->plain)
		return;
	memcpy(&h, packet, HEADER);
	skip = h.first ? EXTENDED : HEADER;
	bytes = len - skip - TRAILER;
	memcpy(&crc, packet + len - TRAILER, TRAILER);
	if (crc32_update(CRC_INIT, packet, len - TRAILER) != crc) {
		errno = EBADMSG;
		raw_die("udp_stream: CRC");
	}
	memcpy(to + h.offset, packet + skip, bytes);
}

static size_t segment_size(struct msghdr *m, size_t len)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int size;

		if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_GRO)
			continue;
		memcpy(&size, CMSG_DATA(c), sizeof(size));
		return (size_t)size;
	}
	return len;
}

/* Checks the CRC of a packet, which is in three parts: headers, payload,
 * trailer. */
static void check_parts(const struct iovec v[3])
{
	uint32_t crc = crc32_update(CRC_INIT, v[0].iov_base, v[0].iov_len);
	uint32_t sent;

	memcpy(&sent, v[2].iov_base, TRAILER);
	if (crc32_update(crc, v[1].iov_base, v[1].iov_len) != sent) {
		errno = EBADMSG;
		raw_die("udp_stream: CRC");
	}
}

/*
 * Receives the next datagram into its place.  Returns the number of packets, 0
 * if there is no datagram.  A datagram's packets are consecutive packets of a
 * message, or messages of one packet each.
 */
static uint64_t receive_in_place(const struct raw_options *o, int fd, char *to)
{
	static struct header headers[SEGMENTS];
	static uint32_t trailers[SEGMENTS];
	struct iovec v[3 * SEGMENTS] = {{&headers[0], sizeof(headers[0])}};
	char control[64];
	struct msghdr m = {.msg_iov = v,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC);
	size_t size, skip, at, left;
	int count = 0;

	if (n < 0 && errno != EAGAIN)
		raw_die("udp_stream: recvmsg");
	if (n <= 0)
		return 0;
	size = segment_size(&m, (size_t)n);
	skip = headers[0].first ? EXTENDED : HEADER;
	at = headers[0].offset;
	for (left = (size_t)n; left;
	     left -= size, at += size - skip - TRAILER) {
		struct iovec *p = &v[3 * count];

		size = left < size ? left : size;
		p[0] = (struct iovec){&headers[count], skip};
		p[1] = (struct iovec){to + at % o->bytes,
				      size - skip - TRAILER};
		p[2] = (struct iovec){&trailers[count++], TRAILER};
	}
	if (readv(fd, v, 3 * count) != n)
		raw_die("udp_stream: readv");
	for (int i = 0; i < count && !o->plain; i++)
		check_parts(&v[3 * i]);
	return (uint64_t)count;
}

/* Receives the next datagram into a buffer and copies it to its place.  Returns
 * the number of packets, 0 if there is no datagram. */
static uint64_t receive_copy(const struct raw_options *o, int fd, char *to)
{
	static char buffer[DATAGRAM + 1];
	char control[64];
	struct iovec v = {buffer, sizeof(buffer)};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control,
			   .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	size_t len = (size_t)n, size;
	uint64_t count = 0;

	if (n < 0 && errno != EAGAIN)
		raw_die("udp_stream: recvmsg");
	if (n <= 0)
		return 0;
	size = segment_size(&m, len);
	for (size_t i = 0; i < len; i += size, count++)
		place_payload(o, to, buffer + i,
			      len - i < size ? len - i : size);
	return count;
}

static void receive_forever(const struct raw_options *o, struct shared *s,
			    int fd, char *to)
{
	uint64_t taken = 0, more;

	for (;;) {
		more = o->peek ? receive_in_place(o, fd, to)
			       : receive_copy(o, fd, to);
		if (!more && o->one_core)
			raw_pause(o);
		taken += more;
		/* `taken` is the only member that this process still writes
		 * once `ready` is set.  So nothing breaks without the order of
		 * this release and the acquire in wait_window. */
		if (more)
			__atomic_store_n(&s->taken, taken, __ATOMIC_RELEASE);
	}
}

static void receive_child(const struct raw_options *o, struct shared *s,
			  char *to)
{
	struct sockaddr_in self = raw_address(o, 1);
	socklen_t size = sizeof(self);
	int bytes = 4 << 20, yes = 1, fd;

	raw_enter(o, 1);
	memset(to, 0, o->bytes);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (fd < 0 || bind(fd, (struct sockaddr *)&self, size) ||
	    (!o->single && setsockopt(fd, SOL_UDP, UDP_GRO, &yes, 4)) ||
	    getsockname(fd, (struct sockaddr *)&s->at, &size))
		raw_die("udp_stream: socket");
	/* Release orders the write of s->at before the write of s->ready.  The
	 * sender acquires s->ready and then reads s->at.  Without this order
	 * the sender might send to an address that is not set. */
	__atomic_store_n(&s->ready, 1, __ATOMIC_RELEASE);
	receive_forever(o, s, fd, to);
}

/* Waits until @count more packets fit into the window.  If the receiver takes
 * no packet for SILENCE, all packets under way count as lost, or, if the
 * receiver has ended, the program ends. */
static void wait_window(struct sender *t, uint64_t count)
{
	uint64_t taken;

	for (;;) {
		taken = __atomic_load_n(&t->shared->taken, __ATOMIC_ACQUIRE);
		/* packets that counted as lost have come late */
		if (taken > t->sent - t->lost)
			t->lost = t->sent - taken;
		if (t->sent + count - t->lost - taken <= WINDOW)
			return;
		if (taken != t->seen || !t->seen_ns) {
			t->seen = taken;
			t->seen_ns = raw_now_ns();
		} else if (raw_now_ns() - t->seen_ns > SILENCE) {
			raw_check(t->receiver);
			t->lost = t->sent - taken;
			t->seen_ns = 0;
		}
		raw_pause(t->o);
	}
}

/* Prepares packet @index of the message in the three parts at iov[3 * slot]. */
static void prepare_packet(struct sender *t, int slot, size_t index)
{
	size_t offset = index * t->o->packet;
	size_t bytes = t->o->bytes - offset;
	struct header *h = &t->headers[slot];
	struct iovec *v = &t->iov[3 * slot];
	uint32_t crc;

	if (bytes > t->o->packet)
		bytes = t->o->packet;
	h->first = index == 0 && !t->o->plain;
	h->offset = (uint32_t)offset;
	v[0] = (struct iovec){h, h->first ? EXTENDED : HEADER};
	v[1] = (struct iovec){t->payload + offset, bytes};
	v[2] = (struct iovec){&t->trailers[slot], TRAILER};
	if (t->o->plain)
		return;
	crc = crc32_update(CRC_INIT, v[0].iov_base, v[0].iov_len);
	t->trailers[slot] = crc32_update(crc, v[1].iov_base, bytes);
}

/* Builds a datagram of @count prepared packets. */
static void build_datagram(struct sender *t, int which, int slot, size_t count)
{
	struct msghdr *m = &t->msgs[which].msg_hdr;
	const struct iovec *v = &t->iov[3 * slot];
	uint16_t size = (uint16_t)(v[0].iov_len + v[1].iov_len + TRAILER);
	struct cmsghdr *c;

	*m = (struct msghdr){.msg_name = &t->shared->at,
			     .msg_namelen = sizeof(t->shared->at),
			     .msg_iov = &t->iov[3 * slot],
			     .msg_iovlen = 3 * count};
	if (count == 1)
		return;
	m->msg_control = t->control[which];
	m->msg_controllen = sizeof(t->control[which]);
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
}

/* Sends the @count packets of a message from packet @index on, by one sendmmsg
 * unless the kernel takes only some of the datagrams. */
static void send_train(struct sender *t, size_t index, size_t count)
{
	size_t per = DATAGRAM / (HEADER + t->o->packet + TRAILER);
	int datagrams = 0, done = 0;
	size_t slot = 0;

	per = t->o->single ? 1 : per > SEGMENTS ? SEGMENTS : per;
	for (size_t i = 0; i < count; i++)
		prepare_packet(t, (int)i, index + i);
	while (slot < count) {
		size_t n = count - slot < per ? count - slot : per;

		if (t->headers[slot].first)
			n = 1;
		build_datagram(t, datagrams++, (int)slot, n);
		slot += n;
	}
	while (done < datagrams) {
		int n = sendmmsg(t->fd, t->msgs + done,
				 (unsigned)(datagrams - done), 0);

		if (n < 0)
			raw_die("udp_stream: sendmmsg");
		done += n;
	}
	t->sent += count;
}

static void send_message(struct sender *t)
{
	size_t packets = (t->o->bytes + t->o->packet - 1) / t->o->packet;
	size_t train = t->o->single ? 1 : TRAIN;
	size_t n;

	for (size_t i = 0; i < packets; i += n) {
		n = packets - i < train ? packets - i : train;
		wait_window(t, n);
		send_train(t, i, n);
	}
}

/* Sends a datagram full of equal messages of one packet each. */
static void send_batch(struct sender *t)
{
	size_t size = EXTENDED + t->o->bytes + TRAILER;
	size_t count = DATAGRAM / size < TRAIN ? DATAGRAM / size : TRAIN;

	wait_window(t, count);
	for (size_t i = 0; i < count; i++)
		prepare_packet(t, (int)i, 0);
	build_datagram(t, 0, 0, count);
	if (sendmmsg(t->fd, t->msgs, 1, 0) < 0)
		raw_die("udp_stream: sendmmsg");
	t->sent += count;
}

static int64_t send_stream(struct sender *t, uint64_t *messages)
{
	const struct raw_options *o = t->o;
	size_t packets = (o->bytes + o->packet - 1) / o->packet;
	int64_t began = raw_now_ns();

	do {
		if (packets == 1 && !o->single)
			send_batch(t);
		else
			send_message(t);
	} while ((double)(raw_now_ns() - began) < o->seconds * 1e9);
	wait_window(t, WINDOW); /* until each packet has arrived or is lost */
	*messages = t->shared->taken / packets;
	return raw_now_ns() - began;
}

/* Ends the program if a packet with all headers is too long for a datagram. */
static void check_packet(const struct raw_options *o)
{
	const size_t most = DATAGRAM - EXTENDED - TRAILER;
	size_t bytes = o->bytes < o->packet ? o->bytes : o->packet;

	if (bytes <= most)
		return;
	fprintf(stderr,
		"udp_stream: a packet has at most %zu bytes of payload, not "
		"%zu: lower -m or -s\n",
		most, bytes);
	exit(2);
}

int main(int argc, char **argv)
{
	static struct sender t;
	struct raw_options o = {.bytes = 65536, .packet = 4096};
	struct shared *s = raw_shared(sizeof(*s));
	uint64_t messages;
	int64_t ns;

	raw_options(argc, argv,
		    "udp_stream [-p] [-o] [-k] [-1] [-s BYTES] [-m PACKET] "
		    "[-t SECONDS] [-N NETNS -A HERE,THERE]",
		    &o);
	check_packet(&o);
	t = (struct sender){.o = &o, .shared = s, .payload = malloc(o.bytes)};
	if (!t.payload)
		raw_die("udp_stream: malloc");
	memset(t.payload, 1, o.bytes);
	t.receiver = raw_fork("udp_stream: fork");
	if (!t.receiver)
		receive_child(&o, s, t.payload);
	raw_enter(&o, 0);
	t.fd = socket(AF_INET, SOCK_DGRAM, 0);
	raw_await(&o, &s->ready, t.receiver);
	ns = send_stream(&t, &messages);
	raw_check(t.receiver);
	kill(t.receiver, SIGKILL);
	waitpid(t.receiver, NULL, 0);
	raw_print_stream("udp_stream", &o, messages, t.lost, ns);
	free(t.payload);
	return 0;
}
