/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes the next system call sends on a connection.  The more bytes a
 * call sends, the less the sender's writes to the kernel's buffers wait for
 * cache lines that the receiver has just read: calls of 1 MiB are half as fast
 * again as calls of 256 KiB.  But the first bytes of a long call leave later.
 * So the size grows from call to call while the calls follow one another and
 * are full, and begins small after a pause.
 *
 * Owner: struct stream_socket; lock: the progress lock.  Sans-IO.
 */
#ifndef HOST_STREAM_BURST_H
#define HOST_STREAM_BURST_H

#include <stdint.h>

#include "host/stream_buffer.h"
#include "util/bits.h"

/* The most bytes of a call: 16 messages of 64 KiB with their headers. */
#define STREAM_BURST_BYTES ((1u << 20) + (8u << 10))
/* After a longer pause the next call sends few bytes again. */
#define STREAM_BURST_PAUSE_NS 300000

/* All zero: nothing was sent yet. */
struct stream_burst {
	uint32_t room;	  /* of the next call, unless there is a pause */
	uint64_t sent_ns; /* when the last call was */
};

/* Returns how many bytes the next call may send. */
static inline uint32_t stream_burst_room(const struct stream_burst *b,
					 uint64_t now_ns)
{
	return b->room && now_ns - b->sent_ns <= STREAM_BURST_PAUSE_NS
		       ? b->room
		       : STREAM_BUFFER_BYTES;
}

/* Called when a call has sent `bytes` bytes, out of `room`. */
static inline void stream_burst_sent(struct stream_burst *b, uint32_t bytes,
				     uint32_t room, uint64_t now_ns)
{
	b->room = bytes >= room / 2 ? bits_min_u32(2 * room, STREAM_BURST_BYTES)
				    : stream_burst_room(b, now_ns);
	b->sent_ns = now_ns;
}

#endif
