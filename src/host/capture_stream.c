/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/capture_stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "host/capture.h"
#include "host/host.h"
#include "iwarp/stream.h"
#include "iwarp/tcp_segment.h"
#include "util/crc.h"

_Static_assert(TCP_SEGMENT_MAX <= CAPTURE_SEGMENT_MAX,
	       "capture_segment writes each segment");

struct capture_stream {
	struct tcp_segments segments; /* makes segments of the bytes */
	struct inaddr end[2];	      /* by enum tcp_segment_side */
	uint8_t tos;		      /* of both directions */
	/* The time at which the bytes of the segments that are written now were
	 * sent or received. */
	uint64_t at_ns;
};

static bool read_address(struct inaddr *to, const struct sockaddr_storage *from)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (from->ss_family == AF_INET6) {
		memcpy(&six, from, sizeof(six));
		memcpy(to->ip, &six.sin6_addr, sizeof(to->ip));
		to->port = ntohs(six.sin6_port);
		return true;
	}
	memcpy(&four, from, sizeof(four));
	inaddr_map_v4(to->ip, &four.sin_addr);
	to->port = ntohs(four.sin_port);
	return from->ss_family == AF_INET;
}

/* Reads the addresses of both ends of fd.  False: fd is not connected. */
static bool read_ends(struct capture_stream *c, int fd)
{
	struct sockaddr_storage own = {.ss_family = AF_UNSPEC}, peer = own;
	socklen_t own_size = sizeof(own), peer_size = sizeof(peer);

	return !getsockname(fd, (struct sockaddr *)&own, &own_size) &&
	       !getpeername(fd, (struct sockaddr *)&peer, &peer_size) &&
	       read_address(&c->end[TCP_SEGMENT_OWN], &own) &&
	       read_address(&c->end[TCP_SEGMENT_PEER], &peer);
}

static void read_tos(struct capture_stream *c, int fd)
{
	bool is_v4 = inaddr_is_v4(c->end[TCP_SEGMENT_PEER].ip);
	int tos = 0;
	socklen_t size = sizeof(tos);

	if (getsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6,
		       is_v4 ? IP_TOS : IPV6_TCLASS, &tos, &size))
		tos = 0;
	c->tos = (uint8_t)tos;
}

/* Returns the sequence number of the SYN from one end to the other. */
static uint32_t first_number(const struct inaddr *from, const struct inaddr *to)
{
	uint32_t sum = crc32c_update(CRC_INIT, from->ip, sizeof(from->ip));

	sum = crc32c_update(sum, &from->port, sizeof(from->port));
	sum = crc32c_update(sum, to->ip, sizeof(to->ip));
	return crc32c_update(sum, &to->port, sizeof(to->port));
}

static void write_segment(void *arg, const struct tcp_segment *made)
{
	const struct capture_stream *c = arg;
	struct capture_segment s = {
		.from = &c->end[made->from],
		.to = &c->end[!made->from],
		.tos = c->tos,
		.tcp = tcp_segment_header(made),
		.bytes = made->bytes,
		.count = made->count,
		.at_ns = c->at_ns,
	};

	capture_segment(&s);
}

/* Writes the handshake of TCP and, as far as they are known, the frames of MPA.
 */
static void write_start(struct capture_stream *c, const struct host_stream *hs,
			const struct host_stream_start *start)
{
	const struct inaddr *own = &c->end[TCP_SEGMENT_OWN];
	const struct inaddr *peer = &c->end[TCP_SEGMENT_PEER];
	const struct tcp_segment_start each[2] = {
		{first_number(own, peer),
		 start->is_initiator ? start->sent_bytes : hs->first_bytes,
		 hs->config->tx_markers},
		{first_number(peer, own), start->got_bytes,
		 hs->config->rx_markers},
	};

	c->at_ns = start->begun_ns;
	tcp_segment_open(
		&c->segments,
		start->is_initiator ? TCP_SEGMENT_OWN : TCP_SEGMENT_PEER, each);
	c->at_ns = start->request_ns;
	tcp_segment_bytes(&c->segments, TCP_SEGMENT_OWN, start->sent,
			  start->sent_bytes);
	if (start->is_initiator)
		c->at_ns = capture_now();
	tcp_segment_bytes(&c->segments, TCP_SEGMENT_PEER, start->got,
			  start->got_bytes);
}

struct capture_stream *capture_stream_new(int fd, const struct host_stream *hs)
{
	struct host_stream_start unknown = {.is_initiator = false};
	struct capture_stream *c;

	if (!capture_is_open())
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c || !read_ends(c, fd)) {
		free(c);
		return NULL;
	}
	read_tos(c, fd);
	c->segments.write = write_segment;
	c->segments.arg = c;
	unknown.begun_ns = unknown.request_ns = capture_now();
	write_start(c, hs, hs->start ? hs->start : &unknown);
	return c;
}

/* Writes what a call of tcp_send or tcp_receive has done: bytes of `side`, or a
 * RST of the peer. */
static void write_result(struct capture_stream *c, enum tcp_segment_side side,
			 const uint8_t *bytes, ssize_t result)
{
	c->at_ns = capture_now();
	if (result > 0)
		tcp_segment_bytes(&c->segments, side, bytes, (uint32_t)result);
	else if (result == -ECONNRESET || result == -EPIPE)
		tcp_segment_reset(&c->segments, TCP_SEGMENT_PEER);
}

void capture_stream_sent(struct capture_stream *c, const uint8_t *bytes,
			 ssize_t result)
{
	if (capture_is_open())
		write_result(c, TCP_SEGMENT_OWN, bytes, result);
}

void capture_stream_received(struct capture_stream *c, const uint8_t *bytes,
			     ssize_t result)
{
	if (result == -EAGAIN || !capture_is_open())
		return;
	write_result(c, TCP_SEGMENT_PEER, bytes, result);
	if (!result)
		tcp_segment_end(&c->segments, TCP_SEGMENT_PEER);
}

void capture_stream_finished(struct capture_stream *c)
{
	c->at_ns = capture_now();
	tcp_segment_end(&c->segments, TCP_SEGMENT_OWN);
}

void capture_stream_free(struct capture_stream *c)
{
	if (!c)
		return;
	c->at_ns = capture_now();
	tcp_segment_fini(&c->segments);
	free(c);
}

void capture_stream_refused(const struct host_stream *hs)
{
	struct capture_stream *c = capture_stream_new(hs->fd, hs);

	if (!c)
		return;
	capture_stream_sent(c, hs->first, hs->first_bytes);
	capture_stream_finished(c);
	capture_stream_free(c);
}
