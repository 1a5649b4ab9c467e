/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A number that threads read and change without a lock and without any order
 * with other accesses: an estimate, or a limit that may be exceeded a little.
 */
#ifndef UTIL_HINT_H
#define UTIL_HINT_H

#include <stdatomic.h>
#include <stdint.h>

struct hint {
	_Atomic int64_t n;
};

/* Returns the number. */
static inline int64_t hint_now(const struct hint *h)
{
	return atomic_load_explicit(&h->n, memory_order_relaxed);
}

/* Sets the number to n.  A concurrent hint_add may be lost. */
static inline void hint_set(struct hint *h, int64_t n)
{
	atomic_store_explicit(&h->n, n, memory_order_relaxed);
}

/* Adds n, which may be negative, in one atomic step. */
static inline void hint_add(struct hint *h, int64_t n)
{
	atomic_fetch_add_explicit(&h->n, n, memory_order_relaxed);
}

#endif
