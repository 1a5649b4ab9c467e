/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arena: one stretch of memory that holds every ring and table of an
 * adapter, addressed by offset and never by pointer, so that another process
 * may map it at another place (docs/ARCHITECTURE.md).  In a real process it
 * is a sparse memfd, in tests and the simulator plain memory: untouched
 * pages cost nothing, so tables are laid out at their limit.
 *
 * It has two parts.  The first is the owner's: others may read it, and the
 * kernel keeps them from writing there (memory/arena_map.h).  In the second,
 * from `shared` on, peers of this host write what they do here by themselves;
 * to its owner whatever lies there is input, as all of an arena is to a peer.
 *
 * Lock: hdr->lock, a leaf, taken inside.  Owner: the adapter.
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
	aoff brk;	 /* first byte never handed out */
	uint64_t used_bytes;
	aoff free[ARENA_CLASSES];
	aoff shared;	 /* where the second part begins; whole pages */
	aoff shared_brk; /* brk of that */
	/* Struct arena_spare, in the first part: what is free of the second. */
	aoff shared_free[ARENA_CLASSES];
	aoff root;	   /* struct hca_shared */
	int32_t shared_fd; /* the owner's, of the second part; see the host */
	uint32_t reserved;
};

#define ARENA_LAYOUT 10

struct arena {
	uint8_t *base; /* this process's mapping; borrowed */
	size_t size;   /* bytes */
	aoff shared;   /* where the second part begins */
};

/* Format `size` bytes of zeroed memory at base. */
void arena_init(struct arena *a, void *base, size_t size);
/* Zeroed, aligned to 64 (to 4096 when >= 4096 bytes); 0 when full. */
aoff arena_alloc(struct arena *a, uint64_t bytes);
/* The same in the part that peers may write. */
aoff arena_alloc_shared(struct arena *a, uint64_t bytes);
/* Give back what one of the two returned for as many bytes; off 0 is allowed.
 */
void arena_free(struct arena *a, aoff off, uint64_t bytes);
/* Bytes handed out and not yet freed. */
uint64_t arena_used(const struct arena *a);

static inline void *arena_at(const struct arena *a, aoff off)
{
	return off ? a->base + off : NULL;
}

/* Does [off, off + bytes) lie inside?  For offsets others may have written,
 * of which the caller has a copy. */
static inline bool arena_has(const struct arena *a, aoff off, uint64_t bytes)
{
	return off && off <= a->size && bytes <= a->size - off;
}

/* The same of the second part, where something begins at whole cache lines. */
static inline bool arena_shares(const struct arena *a, aoff off, uint64_t bytes)
{
	return off % 64 == 0 && off >= a->shared && arena_has(a, off, bytes);
}

#endif
