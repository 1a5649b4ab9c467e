/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets over the link of this process to an emulated subnet.  The adapter of
 * the process is side 0 of two_hcas.  The test acts as the fabric: it moves
 * packets between the data ends and side 1.
 */
#ifndef TESTS_SCENARIO_FABRIC_LINK_PACKETS_H
#define TESTS_SCENARIO_FABRIC_LINK_PACKETS_H

#include "test.h"

#include <poll.h>
#include <sys/socket.h>

#include "hdr/lrh.h"
#include "host/fabric_link.h"
#include "scenario/fabric_peer.h"

#define BYTES 1000u

/* Posts a SEND of the BYTES bytes at the offset `from`. */
static inline void post_send(struct world *w, int side, uint64_t from)
{
	two_hcas_send(w->d, side, HCA_WR_SEND, from, BYTES, 0);
	two_hcas_post(w->d, side);
}

/* Sends the frames of side 0 by the link, until the link is full or has all
 * frames.  Returns how many frames were sent. */
static inline size_t send_all(struct world *w)
{
	struct engine_frame f[16];
	size_t n, k, sent = 0;

	do {
		n = engine_tx(w->engine, f, 16, w->d->now_ns);
		k = fabric_link_send(f, n);
		engine_tx_done(w->engine, k);
		sent += k;
	} while (n && k == n);
	return sent;
}

/* Gives side 1 the packets that side 0 has sent by port 1.  Returns their
 * number. */
static inline size_t move_packets(struct world *w)
{
	static uint8_t bytes[FABRIC_PROTO_BURST_BYTES];
	size_t count = 0;
	ssize_t n;

	while ((n = recv(w->data[0], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		for (size_t at = 0; at < (size_t)n; count++) {
			const struct engine_packet p = {
				.bytes = bytes + at,
				.len = lrh_first(bytes + at, (size_t)n - at),
				.port = 1};

			assert_true(p.len > 0);
			engine_rx_link(w->d->side[1].engine, &p, w->d->now_ns);
			at += p.len;
		}
	return count;
}

/* Sends the frames of side 1 to the process's data end at `port`.  Returns how
 * many frames were sent. */
static inline size_t send_back(struct world *w, int port)
{
	struct engine *e = w->d->side[1].engine;
	uint8_t bytes[LRH_FRAME_MAX];
	struct engine_frame f;
	size_t count = 0;

	while (engine_tx(e, &f, 1, w->d->now_ns)) {
		memcpy(bytes, f.head, f.head_bytes);
		memcpy(bytes + f.head_bytes, f.bytes, f.len);
		assert_true(send(w->data[port - 1], bytes, f.head_bytes + f.len,
				 MSG_DONTWAIT) > 0);
		engine_tx_done(e, 1);
		count++;
	}
	return count;
}

static inline void assert_completes(struct world *w, int side, uint32_t status)
{
	struct cqe c;

	assert_true(two_hcas_poll(w->d, side, &c));
	assert_int_equal(c.status, status);
}

/* Polls one completion of `side`, which must be a success.  Asserts that the
 * BYTES bytes at the offset `to` of this side's memory equal those at the
 * offset `from` of the other side's memory. */
static inline void assert_received(struct world *w, int side, uint64_t to,
				   uint64_t from)
{
	assert_completes(w, side, HCA_SUCCESS);
	assert_memory_equal(w->d->side[side].memory.bytes + to,
			    w->d->side[!side].memory.bytes + from, BYTES);
}

/* Receives the process's question about a port.  Returns the answer, whose
 * member `port` is w->port.  fabric_peer_answer sends the answer, which the
 * caller may change before. */
static inline struct fabric_proto take_question(struct world *w, uint32_t port)
{
	struct fabric_proto m =
		fabric_peer_question(w, FABRIC_PROTO_PORT, port);

	m.port = w->port;
	return m;
}

/* Fills the socket by which the process sends from port 1.  Returns the
 * process's descriptor of that socket. */
static inline int data_descriptor(struct world *w)
{
	while (fabric_link_full_fd() < 0) {
		post_send(w, 0, 0);
		send_all(w);
	}
	return fabric_link_full_fd();
}

#endif
