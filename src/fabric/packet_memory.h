/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for packets.  Freed pieces of one size are kept for the next packets:
 * malloc takes long for a piece of a packet's size, and would give the memory
 * at the heap's end back to the kernel, and get it again, many times a second.
 * A build with AddressSanitizer keeps none, so that it finds each use of freed
 * memory.
 *
 * Owner: struct fabric; no lock.  Sans-IO.
 */
#ifndef FABRIC_PACKET_MEMORY_H
#define FABRIC_PACKET_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum {
	/* The most freed pieces that are kept. */
	PACKET_MEMORY_KEPT = 512,
};

/* Freed pieces of one size; all zero: none. */
struct packet_memory {
	/* The piece that was freed last; its first bytes are the address of the
	 * one that was freed before. */
	void *first;
	/* How many there are. */
	uint32_t count;
};

/* Returns a piece of `bytes` bytes, the same number in each call for m and at
 * least the size of a pointer.  The bytes have any value.  The caller frees the
 * piece by packet_memory_give.  NULL: no memory is left. */
void *packet_memory_take(struct packet_memory *m, size_t bytes);
/* Frees a piece of m. */
void packet_memory_give(struct packet_memory *m, void *piece);
/* Frees the pieces that m keeps. */
void packet_memory_clear(struct packet_memory *m);

#endif
