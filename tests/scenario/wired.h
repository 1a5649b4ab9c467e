/* SPDX-License-Identifier: BSD-2-Clause */
/* An iWARP queue pair whose connection is a TCP connection of a set
 * (host/stream_set.h), and whose peer is the test.  A function that fails ends
 * the test. */
#ifndef TESTS_SCENARIO_WIRED_H
#define TESTS_SCENARIO_WIRED_H

#include "test.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/stream_set.h"
#include "host/stream_socket.h"
#include "scenario/joined.h"

#define BYTES 200000u

/* Side 0 of `j` sends by a connection of `set`; `peer` is the other end. */
struct wired {
	struct joined j;
	struct stream_set set;
	struct host_stream stream;
	int peer;
	uint32_t ends; /* how often HOST_STREAM_ENDED was reported */
};

static inline void count_end(void *arg, enum host_stream_news what)
{
	struct wired *w = arg;

	w->ends += what == HOST_STREAM_ENDED;
}

/* Makes a TCP connection that takes only a part of BYTES bytes. */
static inline void connect_pair(int *near, int *far)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int small = 4096, listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(at);

	assert_int_equal(setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small,
				    sizeof(small)),
			 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size),
			 0);
	*near = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(
		setsockopt(*near, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)),
		0);
	assert_true(!connect(*near, (struct sockaddr *)&at, size) ||
		    errno == EINPROGRESS);
	*far = accept(listener, NULL, NULL);
	assert_true(*far >= 0);
	close(listener);
}

static inline void wire_up(struct wired *w)
{
	memset(w, 0, sizeof(*w));
	joined_plain(&w->j);
	stream_set_init(&w->set);
	w->stream = (struct host_stream){
		.config = &w->j.config[0], .news = count_end, .arg = w};
	connect_pair(&w->stream.fd, &w->peer);
	assert_int_equal(stream_set_open(&w->set, w->j.d->side[0].engine,
					 w->j.d->side[0].side, &w->stream,
					 w->j.d->now_ns),
			 0);
}

static inline void take_down(struct wired *w)
{
	stream_set_fini(&w->set);
	close(w->peer);
	joined_part(&w->j);
}

static inline int descriptor_of(const struct wired *w)
{
	return (int)shared_own(&w->set.waits_on) - 1;
}

/* Returns whether a thread that waits for work would wake up for the set. */
static inline bool is_due(const struct wired *w)
{
	struct pollfd p = {descriptor_of(w), POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

static inline void receive_turn(struct wired *w)
{
	stream_set_receive(&w->set, w->j.d->side[0].engine, w->j.d->now_ns);
}

static inline void end_queue_pair(struct wired *w)
{
	stream_set_drop(&w->set, w->j.d->side[0].engine,
			w->j.d->side[0].qp->qpn, w->j.d->now_ns);
}

/* Posts a WRITE, which completes although the socket takes only a part of the
 * WRITE's bytes. */
static inline void fill_socket(struct wired *w)
{
	struct engine *e = w->j.d->side[0].engine;
	struct engine_frame frame;

	two_hcas_fill(w->j.d, 0, 0, BYTES);
	joined_post(&w->j, HCA_WR_RDMA_WRITE, 0, BYTES, 0);
	assert_int_equal(engine_tx(e, &frame, 1, w->j.d->now_ns), 0);
	assert_true(stream_set_send(&w->set, e, w->j.d->now_ns));
	joined_done(&w->j, 0, HCA_SUCCESS);
	assert_int_equal(w->set.full, 1);
}

/* The bytes that the peer has read in read_all. */
static uint8_t taken[4 * BYTES];
static size_t taken_bytes;

/* The peer reads all bytes until FIN, and its engine executes the requests. */
static inline void read_all(struct wired *w)
{
	struct two_hcas_side *s = &w->j.d->side[1];
	uint8_t bytes[4096];
	ssize_t n;

	taken_bytes = 0;
	do {
		struct pollfd p = {w->peer, POLLIN, 0};

		while (!poll(&p, 1, 0))
			receive_turn(w);
		n = recv(w->peer, bytes, sizeof(bytes), 0);
		assert_true(n >= 0);
		memcpy(taken + taken_bytes, bytes, (size_t)n);
		taken_bytes += (size_t)n;
		engine_stream_rx(s->engine, s->side, bytes, (uint32_t)n,
				 w->j.d->now_ns);
	} while (n);
	joined_same(&w->j, 0, 0, BYTES);
}

#endif
