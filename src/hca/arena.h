/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arena: a range of memory that holds every ring and table of an adapter,
 * addressed by offset and never by pointer, so that another process may map the
 * arena at another address (docs/ARCHITECTURE.md).  In a real process the arena
 * is two sparse memfds, one for each part (memory/arena_map.h); in tests and
 * the simulator it is plain memory.  Untouched pages cost no memory, so each
 * table has room for its largest number of rows.
 *
 * The arena has two parts.  Only the owner writes the first part: peers may
 * read it, and from Linux 5.1 on the kernel keeps them from writing there
 * (memory/arena_map.h).  Peers of this host and the owner write the second
 * part, from `shared` on.  The second part is input to the owner, and the whole
 * arena is input to a peer.
 *
 * Lock: hdr->lock, a leaf, taken by the functions that allocate and free.
 * Owner: the adapter.
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

/* The rest of the last page that was begun for blocks smaller than a page: the
 * bytes from next to end.  All zeroes: there is none. */
struct arena_page {
	aoff next, end;
};

/* The header of an arena, at offset 0. */
struct arena_hdr {
	uint64_t magic;	   /* ARENA_MAGIC */
	uint64_t size;	   /* bytes */
	struct alock lock; /* covers the members from brk to shared_page */
	uint32_t layout;   /* ARENA_LAYOUT of the owner's build */
	aoff brk; /* the first byte of part one that was never allocated */
	uint64_t used_bytes; /* allocated, rounded up to size classes */
	/* The first free block of part one, by size class; 0: none.  A free
	 * block begins with the offset of the next. */
	aoff free[ARENA_CLASSES];
	aoff shared;	 /* where part two begins, at a whole page */
	aoff shared_brk; /* the first byte of part two never allocated */
	/* The first free block of part two, by size class, described by a
	 * struct arena_spare (arena.c) in part one; 0: none. */
	aoff shared_free[ARENA_CLASSES];
	struct arena_page page, shared_page; /* of part one; of part two */
	aoff root;			     /* struct hca_shared */
	int32_t shared_fd; /* the owner's descriptor of the second part */
	/* The owner's process ID in its own PID namespace; 0: unknown. */
	uint32_t process;
};

#define ARENA_LAYOUT 16 /* changes with the structures in an arena */

struct arena {
	uint8_t *base; /* this process's mapping; borrowed */
	size_t size;   /* bytes */
	aoff shared;   /* where part two begins */
};

/* Formats `size` bytes of zeroed memory at base as an arena, and sets *a.  size
 * is at least 8192.  The caller owns the memory. */
void arena_init(struct arena *a, void *base, size_t size);
/* Allocates zeroed bytes in the owner's part.  The alignment is `bytes` rounded
 * up to a power of two, but at least 64 and at most 4096 bytes.  0: the part is
 * full. */
aoff arena_alloc(struct arena *a, uint64_t bytes);
/* Allocates zeroed bytes in the part that peers may write, aligned as those of
 * arena_alloc.  0: the part is full. */
aoff arena_alloc_shared(struct arena *a, uint64_t bytes);
/* Allocates as arena_alloc_shared does, for buffers that the caller can do
 * without.  0: there is no freed block of this size, and the first half of the
 * part is full; the second half is kept for queues.  The bytes may be those of
 * an earlier user of the memory: they are not zeroed, so that pages that nobody
 * writes take no memory. */
aoff arena_alloc_buffer(struct arena *a, uint64_t bytes);
/* Frees the memory that one of the functions above returned for the same number
 * of bytes.  An offset of 0 is allowed. */
void arena_free(struct arena *a, aoff off, uint64_t bytes);
/* Returns the number of bytes that are allocated in both parts, rounded up to
 * size classes.  Takes no lock. */
uint64_t arena_used(const struct arena *a);

/* Returns the address of an offset in this process; NULL for 0. */
static inline void *arena_at(const struct arena *a, aoff off)
{
	return off ? a->base + off : NULL;
}

/* No block lies in the last ARENA_UNUSED bytes of an arena.  A peer may write
 * into a slot a number of SGEs for which the slot has no room.  A reader then
 * reads past the slot (wqe_sge_count), but never past the arena. */
#define ARENA_UNUSED 4096u

/* Does [off, off + bytes) lie in the range that blocks may use, and is off not
 * 0?  If another process may have written the offset, the caller checks a copy
 * of the offset, and then uses only this copy. */
static inline bool arena_has(const struct arena *a, aoff off, uint64_t bytes)
{
	uint64_t end = a->size - ARENA_UNUSED;

	return off && off <= end && bytes <= end - off;
}

/* Does [off, off + bytes) lie inside part two, which peers write, and begin at
 * a cache line, as each block there does?  The caller checks a copy of the
 * offset, and then uses only this copy. */
static inline bool arena_shares(const struct arena *a, aoff off, uint64_t bytes)
{
	return off % 64 == 0 && off >= a->shared && arena_has(a, off, bytes);
}

#endif
