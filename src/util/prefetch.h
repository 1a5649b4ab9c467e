/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prefetches memory that will be used soon.  Code that follows pointers from
 * structure to structure waits for one cache miss after another.  If it
 * prefetches the structures first, the misses overlap.
 */
#ifndef UTIL_PREFETCH_H
#define UTIL_PREFETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define PREFETCH_LINE 64   /* bytes of a cache line */
#define PREFETCH_MUCH 8192 /* bytes: a good part of the L1 data cache */

/* Prefetches the lines of [p, p + bytes) for writing.  p may be NULL or point
 * to memory that was freed. */
static inline void prefetch(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PREFETCH_LINE)
		__builtin_prefetch((const char *)p + i, 1);
}

/* Prefetches the lines of [p, p + bytes) for reading, and leaves them in other
 * processors' caches.  p may be NULL or point to memory that was freed. */
static inline void prefetch_read(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PREFETCH_LINE)
		__builtin_prefetch((const char *)p + i, 0);
}

/*
 * Remembers the structure that was used last.  It is still in the cache, unless
 * much data has gone through the cache since.  Relaxed accesses suffice: a
 * wrong answer costs a cache miss or a needless prefetch.
 */
struct prefetch_turn {
	_Atomic(const void *) last;
};

/* Returns whether the structure at `whose` should be prefetched, and remembers
 * `whose`. */
static inline bool prefetch_is_due(struct prefetch_turn *t, const void *whose)
{
	if (atomic_load_explicit(&t->last, memory_order_relaxed) == whose)
		return false;
	atomic_store_explicit(&t->last, whose, memory_order_relaxed);
	return true;
}

/* Notes that `bytes` bytes of data went through the cache.  More than
 * PREFETCH_MUCH bytes make the next prefetch_is_due return true. */
static inline void prefetch_passed(struct prefetch_turn *t, size_t bytes)
{
	if (bytes > PREFETCH_MUCH)
		atomic_store_explicit(&t->last, NULL, memory_order_relaxed);
}

#endif
