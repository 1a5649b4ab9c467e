/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arena: a range of memory that holds every ring and table of an adapter,
 * addressed by offset and never by pointer, so that another process may map the
 * arena at another address (docs/ARCHITECTURE.md).  In a real process the arena
 * is a sparse memfd, in tests and the simulator plain memory.  Untouched pages
 * cost nothing, so tables are laid out at their limit.
 *
 * The arena has two parts.  Only the owner writes the first part: peers may
 * read it, and the kernel keeps them from writing there (memory/arena_map.h).
 * Peers of this host and the owner write the second part, from `shared` on.
 * The second part is input to the owner, and the whole arena is input to a
 * peer.
 *
 * Lock: hdr->lock, a leaf, taken by the functions below.  Owner: the adapter.
 */
#ifndef HCA_ARENA_H
#define HCA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/lock.h"

typedef uint64_t aoff; /* bytes from the arena's start; 0 names nothing */

#define ARENA_MAGIC   0x4144564252420001ull
#define ARENA_CLASSES 40 /* power-of-two size classes */

/* At offset 0. */
struct arena_hdr {
	uint64_t magic;
	uint64_t size; /* bytes */
	struct alock lock;
	uint32_t layout; /* ARENA_LAYOUT of the writer */
	aoff brk; /* the first byte of part one that was never allocated */
	uint64_t used_bytes;
	aoff free[ARENA_CLASSES];
	aoff shared;	 /* where the second part begins; whole pages */
	aoff shared_brk; /* the first byte of part two never allocated */
	/* Struct arena_spare, in the first part: free blocks of the second. */
	aoff shared_free[ARENA_CLASSES];
	aoff root;	   /* struct hca_shared */
	int32_t shared_fd; /* the owner's descriptor of the second part */
	uint32_t reserved;
};

#define ARENA_LAYOUT 10

struct arena {
	uint8_t *base; /* this process's mapping; borrowed */
	size_t size;   /* bytes */
	aoff shared;   /* where the second part begins */
};

/* Formats `size` bytes of zeroed memory at base, which the caller owns. */
void arena_init(struct arena *a, void *base, size_t size);
/* Allocates zeroed bytes in the owner's part, aligned to 64 bytes, or to 4096
 * if there are at least 4096 bytes.  0: the part is full. */
aoff arena_alloc(struct arena *a, uint64_t bytes);
/* Allocates zeroed bytes in the part that peers may write, aligned as those of
 * arena_alloc.  0: the part is full. */
aoff arena_alloc_shared(struct arena *a, uint64_t bytes);
/* Frees what arena_alloc or arena_alloc_shared returned for the same number of
 * bytes; an offset of 0 is allowed. */
void arena_free(struct arena *a, aoff off, uint64_t bytes);
/* The number of bytes that are allocated, rounded up to size classes. */
uint64_t arena_used(const struct arena *a);

/* The address of an offset in this process; NULL for 0. */
static inline void *arena_at(const struct arena *a, aoff off)
{
	return off ? a->base + off : NULL;
}

/* Does [off, off + bytes) lie inside the arena?  For an offset that another
 * process may have written and of which the caller has a copy. */
static inline bool arena_has(const struct arena *a, aoff off, uint64_t bytes)
{
	return off && off <= a->size && bytes <= a->size - off;
}

/* Does [off, off + bytes) lie inside the peers' part, at a whole cache line, as
 * each block there does?  For a copy of an offset, as in arena_has. */
static inline bool arena_shares(const struct arena *a, aoff off, uint64_t bytes)
{
	return off % 64 == 0 && off >= a->shared && arena_has(a, off, bytes);
}

#endif
