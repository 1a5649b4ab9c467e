/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides how many bytes the next system call sends on a connection.  The more
 * bytes a call sends, the less the sender's writes to the kernel's buffers wait
 * for cache lines that the receiver has just read: calls of 1 MiB send 1.5
 * times as many bytes a second as calls of 256 KiB.  But the first bytes of a
 * long call leave later.  So the size begins small after a pause.  It grows
 * from call to call while the calls follow one another and each of them sends
 * at least half of the bytes that it may send.
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
/* After a longer pause the next call sends few bytes again.  The time that the
 * calls of the last turn took is no pause. */
#define STREAM_BURST_PAUSE_NS 300000
/* The most time that a call takes for each byte: slow machines send 1 GB/s. */
#define STREAM_BURST_BYTE_NS 1

/* All zero: nothing was sent yet. */
struct stream_burst {
	/* How many bytes the next call may send, unless there is a pause; 0: as
	 * many as after a pause. */
	uint32_t room;
	uint64_t sent_ns; /* the time of the turn that made the last call */
	uint64_t bytes;	  /* how many bytes that turn has sent */
};

/* Returns how many bytes the next call may send. */
static inline uint32_t stream_burst_room(const struct stream_burst *b,
					 uint64_t now_ns)
{
	uint64_t most_ns =
		STREAM_BURST_PAUSE_NS + b->bytes * STREAM_BURST_BYTE_NS;

	return b->room && now_ns - b->sent_ns <= most_ns ? b->room
							 : STREAM_BUFFER_BYTES;
}

/* Called when a call has sent `bytes` bytes, out of `room`.  now_ns: the time
 * of the turn. */
static inline void stream_burst_sent(struct stream_burst *b, uint32_t bytes,
				     uint32_t room, uint64_t now_ns)
{
	b->room = bytes >= room / 2 ? bits_min_u32(2 * room, STREAM_BURST_BYTES)
				    : stream_burst_room(b, now_ns);
	b->bytes = bytes + (now_ns == b->sent_ns ? b->bytes : 0);
	b->sent_ns = now_ns;
}

#endif
