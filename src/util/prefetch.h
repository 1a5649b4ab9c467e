/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ask for memory that will be used soon.  Code that goes from structure to
 * structure waits for each; asked for together they come together.
 */
#ifndef UTIL_PREFETCH_H
#define UTIL_PREFETCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define PREFETCH_LINE 64
#define PREFETCH_MUCH 8192 /* bytes: a good part of the first cache */

/* The lines of [p, p + bytes); p may be NULL or stale. */
static inline void prefetch(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PREFETCH_LINE)
		__builtin_prefetch((const char *)p + i, 1);
}

/* The same of what is only read, or which others read meanwhile. */
static inline void prefetch_read(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PREFETCH_LINE)
		__builtin_prefetch((const char *)p + i, 0);
}

/*
 * The structure whose turn was last is in the cache, unless something
 * large has gone through the cache since.
 */
struct prefetch_turn {
	_Atomic(const void *) last;
};

static inline bool prefetch_is_due(struct prefetch_turn *t, const void *whose)
{
	if (atomic_load_explicit(&t->last, memory_order_relaxed) == whose)
		return false;
	atomic_store_explicit(&t->last, whose, memory_order_relaxed);
	return true;
}

/* So many bytes went through the cache. */
static inline void prefetch_passed(struct prefetch_turn *t, size_t bytes)
{
	if (bytes > PREFETCH_MUCH)
		atomic_store_explicit(&t->last, NULL, memory_order_relaxed);
}

#endif
