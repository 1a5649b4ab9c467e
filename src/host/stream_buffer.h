/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The buffers of a set's full sockets (stream_set.h).  Each connection reserves
 * a buffer when it opens, so a socket that becomes full always gets one, and
 * the connection survives when the process has no memory left.  A reserved
 * buffer is address space, and takes memory only when bytes are written there
 * (but at once in a program that has called mlockall(MCL_FUTURE)).  A block
 * other than the first has no memory while none of its buffers is in use.
 *
 * Owner: struct stream_set; lock: the progress lock.
 */
#ifndef HOST_STREAM_BUFFER_H
#define HOST_STREAM_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#define STREAM_BUFFER_BYTES (256u << 10)
#define STREAM_BUFFER_BLOCK 16 /* buffers of one mapping */

/* Some buffers in one mapping. */
struct stream_buffer_block {
	uint8_t *base;	/* STREAM_BUFFER_BLOCK buffers, mapped */
	uint32_t taken; /* the bit 1 << i: buffer i is in use */
};

/* All zero: no buffers. */
struct stream_buffers {
	struct stream_buffer_block *block; /* owned */
	uint32_t blocks;		   /* entries of block[] */
	uint32_t reserved; /* how many connections have reserved a buffer */
};

/* Reserves a buffer for one more connection.  False: no memory is left. */
bool stream_buffer_reserve(struct stream_buffers *b);
/* Ends a reservation; the connection has given back its buffer.  When no
 * reservation is left, unmaps all blocks but the first. */
void stream_buffer_release(struct stream_buffers *b);
/* Returns a buffer of STREAM_BUFFER_BYTES.  Called by a connection that has
 * reserved one and has none.  Cannot fail. */
uint8_t *stream_buffer_take(struct stream_buffers *b);
/* Gives a buffer back; the bytes of the buffer may be lost. */
void stream_buffer_give(struct stream_buffers *b, const uint8_t *buffer);
/* Frees all memory. */
void stream_buffer_fini(struct stream_buffers *b);

#endif
