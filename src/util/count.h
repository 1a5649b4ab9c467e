/* SPDX-License-Identifier: BSD-2-Clause */
/* A count that threads change without a lock: users of an object. */
#ifndef UTIL_COUNT_H
#define UTIL_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct count {
	_Atomic uint32_t n;
};

static inline void count_up(struct count *c)
{
	atomic_fetch_add(&c->n, 1);
}

/* False, and nothing is changed: there are so many already. */
static inline bool count_up_to(struct count *c, uint32_t most)
{
	if (atomic_fetch_add(&c->n, 1) < most)
		return true;
	atomic_fetch_sub(&c->n, 1);
	return false;
}

/* How often it was taken before: no two who take are told the same. */
static inline uint32_t count_take(struct count *c)
{
	return atomic_fetch_add(&c->n, 1);
}

static inline void count_down(struct count *c)
{
	atomic_fetch_sub(&c->n, 1);
}

static inline uint32_t count_now(const struct count *c)
{
	return atomic_load_explicit(&c->n, memory_order_acquire);
}

#endif
