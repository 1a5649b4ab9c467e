/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames under construction: packets that go the same way are put behind one
 * another while they are equally long, so that one system call sends them
 * all.  Only the last of a frame may be shorter; a WRITE's First, which its
 * RETH makes longer, begins a frame of its own.
 *
 *	frame	| packet | packet | packet | shorter |
 *		 id 0     id 1     id 2     id 3	(IPv4, see rocev2.h)
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_BURST_H
#define ENGINE_BURST_H

#include "encap/rocev2.h"
#include "engine/engine.h"
#include "ibt/ibt.h"

#define BURST_FRAMES   64
#define BURST_SEGMENTS 128   /* what Linux takes in one UDP_SEGMENT send */
#define BURST_BYTES    65400 /* of one frame: a datagram of either family */
#define BURST_AREA     (128 << 10)
/* Space that burst_space promises. */
#define BURST_PACKET (IBT_PACKET_BYTES + 8)

struct burst_path {
	struct inaddr from, to;
	uint32_t dest_qpn;
	uint32_t link; /* as in hca_ah */
	uint8_t tos, ttl;
	uint32_t together; /* packets in one frame, at most BURST_SEGMENTS */
	bool local;	   /* to a process of this host, see credit.h */
};

struct burst {
	uint32_t count, first; /* frames made; offered and not yet sent */
	uint32_t segments;     /* of the newest frame */
	bool is_open;	       /* the newest frame may grow */
	size_t used;	       /* bytes of the area */
	struct rocev2_sum sum; /* of the last payload; its factor serves on */
	struct rocev2_memo memo;
	struct engine_frame frames[BURST_FRAMES];
	uint8_t area[BURST_AREA];
};

/* Returns where the next packet has to be written; NULL: there is no room. */
uint8_t *burst_space(struct burst *b);
/*
 * A packet of len bytes, without ICRC, was written at burst_space.  Its payload
 * is of sum_bytes (0: not known) and has that CRC (struct ibt).
 */
void burst_put(struct burst *b, const struct burst_path *path, size_t len,
	       uint32_t sum_bytes, uint32_t sum_crc);
/* The way of a connected QP's packets; of one datagram.  All that the kernel
 * takes together. */
struct burst_path burst_path_of(const struct ibt_qp *q);
struct burst_path burst_path_to(const struct wq_to *to);
/* A packet of a frame, with its ICRC, leaves alone: its id is 0 then. */
void burst_part(const struct inaddr *from, const struct inaddr *to,
		uint8_t *packet, size_t len);
/* Use the area again if all frames have been sent. */
void burst_recycle(struct burst *b);

#endif
