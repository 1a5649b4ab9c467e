/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages over TCP in FPDUs with headers of the sizes of RDMA WRITE over iWARP
 * (RFC 5041, 5044): the raw limit of iWARP's rate over a socket.
 *
 *	+----+---------+---+ +----+---------+---+
 *	| 16 | payload | 4 | | 16 | payload | 4 | ...	one sendmsg
 *	+----+---------+---+ +----+---------+---+
 *
 * An FPDU has at most -m bytes, by default the bytes of a TCP segment of the
 * connection, and never more than 64774: a ULPDU of 64768 bytes, its length and
 * its CRC.  Both ends compute CRC-32C.  The receiver knows the
 * lengths of all FPDUs in advance: recvmsg writes each payload to its place,
 * and the program copies nothing.  -p: no CRC is computed, but its 4 bytes are
 * sent.
 */
#include "raw.h"
#include "util/crc.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEADER	  16 /* bytes: MPA's length, DDP's tagged header */
#define TRAILER	  4  /* bytes: the CRC */
#define ULPDU_MAX 64768
#define PIECES	  3	      /* of an FPDU: header, payload, trailer */
#define BATCH	  (256 << 10) /* bytes of messages of one system call */
#define BATCH_MAX 64	      /* messages of one system call */

/* FPDUs of one or more messages, which repeat for ever. */
struct pattern {
	size_t fpdus, messages;
	struct iovec *pieces; /* PIECES of each FPDU */
	char *headers;	      /* HEADER bytes of each FPDU */
	uint32_t *trailers;   /* one of each FPDU */
	char *payload;	      /* the bytes of one message */
};

/* Where the next byte of a pattern is: at `offset` in a piece. */
struct place {
	size_t piece, offset;
};

static struct sockaddr_in *at; /* shared: the address of end 1 */
static int *ready;	       /* shared: *at is set, and end 1 listens */
static size_t *fpdu_max; /* shared: bytes of an FPDU, as end 0 found them */

/* Returns the most bytes of an FPDU.  Only end 0 calls this, because the two
 * ends of a connection may see different sizes of a segment. */
static size_t find_fpdu_max(const struct raw_options *o, int fd)
{
	int mss = 0;
	socklen_t size = sizeof(mss);
	size_t most = o->packet;

	if (!most) {
		if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &size))
			raw_die("fpdu_stream: TCP_MAXSEG");
		most = (size_t)mss;
	}
	if (most < HEADER + 4 + TRAILER) {
		fprintf(stderr, "fpdu_stream: -m takes 24 or more\n");
		exit(2);
	}
	if (most > ULPDU_MAX + 2 + TRAILER)
		most = ULPDU_MAX + 2 + TRAILER;
	return most;
}

static uint32_t fpdu_crc(const struct pattern *p, size_t fpdu)
{
	const struct iovec *at_fpdu = p->pieces + fpdu * PIECES;
	uint32_t crc = CRC_INIT;

	for (int i = 0; i < PIECES - 1; i++)
		crc = crc32c_update(crc, at_fpdu[i].iov_base,
				    at_fpdu[i].iov_len);
	return ~crc;
}

static void add_fpdu(struct pattern *p, size_t offset, size_t bytes)
{
	struct iovec *piece = p->pieces + p->fpdus * PIECES;
	char *header = p->headers + p->fpdus * HEADER;

	header[0] = (char)((bytes + HEADER - 2) >> 8);
	header[1] = (char)(bytes + HEADER - 2);
	piece[0] = (struct iovec){header, HEADER};
	piece[1] = (struct iovec){p->payload + offset, bytes};
	piece[2] = (struct iovec){p->trailers + p->fpdus, TRAILER};
	p->fpdus++;
}

static void make_pattern(struct pattern *p, const struct raw_options *o)
{
	size_t most = (*fpdu_max - HEADER - TRAILER) & ~(size_t)3;
	size_t each = (o->bytes + most - 1) / most;

	*p = (struct pattern){.messages = BATCH / o->bytes};
	if (!p->messages)
		p->messages = 1;
	if (p->messages > BATCH_MAX)
		p->messages = BATCH_MAX;
	p->pieces = calloc(p->messages * each * PIECES, sizeof(*p->pieces));
	p->headers = calloc(p->messages * each, HEADER);
	p->trailers = calloc(p->messages * each, TRAILER);
	p->payload = calloc(1, o->bytes);
	if (!p->pieces || !p->headers || !p->trailers || !p->payload)
		raw_die("fpdu_stream: calloc");
	for (size_t m = 0; m < p->messages; m++)
		for (size_t done = 0; done < o->bytes; done += most)
			add_fpdu(p, done,
				 o->bytes - done < most ? o->bytes - done
							: most);
}

static void free_pattern(struct pattern *p)
{
	free(p->pieces);
	free(p->headers);
	free(p->trailers);
	free(p->payload);
}

/* Fills v with the pieces of the pattern from place *next on, at most IOV_MAX
 * of them.  Returns their number. */
static size_t fill_vector(const struct pattern *p, const struct place *next,
			  struct iovec *v)
{
	size_t left = p->fpdus * PIECES - next->piece;
	size_t n = left < IOV_MAX ? left : IOV_MAX;

	memcpy(v, p->pieces + next->piece, n * sizeof(*v));
	v[0].iov_base = (char *)v[0].iov_base + next->offset;
	v[0].iov_len -= next->offset;
	return n;
}

/* Moves the place by `bytes` bytes.  If is_checked, checks the CRC of each FPDU
 * that is complete now. */
static void advance_place(struct pattern *p, struct place *next, size_t bytes,
			  bool is_checked)
{
	while (bytes) {
		size_t left = p->pieces[next->piece].iov_len - next->offset;
		size_t fpdu = next->piece / PIECES;

		if (bytes < left) {
			next->offset += bytes;
			return;
		}
		bytes -= left;
		next->offset = 0;
		next->piece++;
		if (next->piece % PIECES == 0 && is_checked &&
		    p->trailers[fpdu] != fpdu_crc(p, fpdu)) {
			errno = EBADMSG;
			raw_die("fpdu_stream: CRC");
		}
	}
	if (next->piece == p->fpdus * PIECES)
		next->piece = 0;
}

static void receive_all(const struct raw_options *o)
{
	struct iovec v[IOV_MAX];
	struct place next = {0};
	struct pattern p;
	int listener, fd;

	raw_enter(o, 1);
	listener = raw_listen(o, 1, "fpdu_stream: listen", at);
	/* Release orders the write of *at before the write of *ready.  End 0
	 * acquires *ready and then reads *at.  Without this order end 0 might
	 * connect to an address that is not set. */
	__atomic_store_n(ready, 1, __ATOMIC_RELEASE);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		raw_die("fpdu_stream: accept");
	/* End 1 reads nothing else that end 0 wrote before, so nothing breaks
	 * without the order of this acquire and the release in main. */
	while (!__atomic_load_n(fpdu_max, __ATOMIC_ACQUIRE))
		raw_pause(o);
	make_pattern(&p, o);
	for (;;) {
		struct msghdr m = {.msg_iov = v,
				   .msg_iovlen = fill_vector(&p, &next, v)};
		ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

		if (!n)
			break;
		if (n < 0 && errno != EAGAIN)
			raw_die("fpdu_stream: recvmsg");
		if (n < 0)
			raw_pause(o);
		else
			advance_place(&p, &next, (size_t)n, !o->plain);
	}
	free_pattern(&p);
	exit(0);
}

static int connect_end(const struct raw_options *o, pid_t child)
{
	int fd, one = 1;

	raw_enter(o, 0);
	raw_await(o, ready, child);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)at, sizeof(*at)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		raw_die("fpdu_stream: connect");
	return fd;
}

/* Sends all FPDUs of the pattern once. */
static void send_pattern(int fd, struct pattern *p, bool has_crc)
{
	struct iovec v[IOV_MAX];
	struct place next = {0};

	for (size_t i = 0; i < p->fpdus && has_crc; i++)
		p->trailers[i] = fpdu_crc(p, i);
	do {
		struct msghdr m = {.msg_iov = v,
				   .msg_iovlen = fill_vector(p, &next, v)};
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (n <= 0)
			raw_die("fpdu_stream: sendmsg");
		advance_place(p, &next, (size_t)n, false);
	} while (next.piece || next.offset);
}

int main(int argc, char **argv)
{
	struct raw_options o = {.bytes = 65536};
	uint64_t messages = 0;
	struct pattern p;
	int64_t began, ns;
	pid_t child;
	int fd;

	raw_options(argc, argv,
		    "fpdu_stream [-1p] [-s BYTES] [-m FPDU-BYTES] "
		    "[-t SECONDS] [-N NETNS -A HERE,THERE]",
		    &o);
	at = raw_shared(sizeof(*at));
	ready = raw_shared(sizeof(*ready));
	fpdu_max = raw_shared(sizeof(*fpdu_max));
	child = raw_fork("fpdu_stream: fork");
	if (child == 0)
		receive_all(&o);
	fd = connect_end(&o, child);
	__atomic_store_n(fpdu_max, find_fpdu_max(&o, fd), __ATOMIC_RELEASE);
	make_pattern(&p, &o);
	began = raw_now_ns();
	do {
		send_pattern(fd, &p, !o.plain);
		messages += p.messages;
		ns = raw_now_ns() - began;
	} while ((double)ns < o.seconds * 1e9);
	/* the time ends when the bytes in the sockets' buffers have arrived */
	shutdown(fd, SHUT_WR);
	raw_join(child);
	raw_print_stream("fpdu_stream", &o, messages, 0, raw_now_ns() - began);
	free_pattern(&p);
	return 0;
}
