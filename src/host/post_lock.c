/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/post_lock.h"

#include "util/relax.h"

#define SPINS 1000 /* tries to take a post lock */

void post_lock_init_all(struct post_locks *p)
{
	for (uint32_t i = 0; i < ENGINE_POST_LOCKS; i++) {
		lock_init(&p->of[i].lock);
		clock_init(&p->of[i].clock);
	}
}

void post_lock_fini_all(struct post_locks *p)
{
	for (uint32_t i = 0; i < ENGINE_POST_LOCKS; i++)
		lock_fini(&p->of[i].lock);
}

void post_lock_take_all(struct post_locks *p) NO_LOCK_ANALYSIS
{
	for (uint32_t left = p->mask; left; left &= left - 1)
		lock_take(&p->of[__builtin_ctz(left)].lock);
	p->are_taken = true;
}

void post_lock_give_all(struct post_locks *p) NO_LOCK_ANALYSIS
{
	for (uint32_t left = p->mask; left && p->are_taken; left &= left - 1)
		lock_give(&p->of[__builtin_ctz(left)].lock);
	p->are_taken = false;
}

void post_lock_add(struct post_locks *p, uint32_t number)
{
	if (p->mask & 1u << number)
		return;
	/* all again, in the order of their numbers */
	post_lock_give_all(p);
	p->mask |= 1u << number;
	post_lock_take_all(p);
}

bool post_lock_take_soon(struct post_lock *l) NO_LOCK_ANALYSIS
{
	for (uint32_t i = 0; i < SPINS; i++) {
		if (lock_try(&l->lock))
			return true;
		relax();
	}
	return false;
}
