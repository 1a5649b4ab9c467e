/* SPDX-License-Identifier: BSD-2-Clause */
/* A counter that threads change without a lock, for example the number of users
 * of an object. */
#ifndef UTIL_COUNT_H
#define UTIL_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct count {
	_Atomic uint32_t n;
};

/* Adds 1. */
static inline void count_up(struct count *c)
{
	atomic_fetch_add(&c->n, 1);
}

/* Adds 1.  Returns true if the count was less than `most`; otherwise subtracts
 * the 1 again and returns false.  A concurrent call that sees the higher count
 * may also return false. */
static inline bool count_up_to(struct count *c, uint32_t most)
{
	if (atomic_fetch_add(&c->n, 1) < most)
		return true;
	atomic_fetch_sub(&c->n, 1);
	return false;
}

/* Adds 1 and returns the previous count, so no two callers get the same number.
 */
static inline uint32_t count_take(struct count *c)
{
	return atomic_fetch_add(&c->n, 1);
}

/* Subtracts 1.  The subtraction is seq_cst, and so a release: a thread whose
 * count_now returns the new count, or a later one, sees the caller's earlier
 * stores.  Otherwise a thread that finds the count 0 could reuse an object
 * before the last user's stores to it. */
static inline void count_down(struct count *c)
{
	atomic_fetch_sub(&c->n, 1);
}

/* Does what count_down does, and returns whether the new count is 0.  Only
 * the last of concurrent callers gets true.  The subtraction is also an
 * acquire, as the load in count_now is. */
static inline bool count_drop(struct count *c)
{
	return atomic_fetch_sub(&c->n, 1) == 1;
}

/* Returns the count.  The load is an acquire: the caller's later loads see what
 * other threads wrote before the calls of count_down that led to this count.
 * count_down says what breaks without this order. */
static inline uint32_t count_now(const struct count *c)
{
	return atomic_load_explicit(&c->n, memory_order_acquire);
}

#endif
