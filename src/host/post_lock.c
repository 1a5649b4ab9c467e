/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/post_lock.h"

#include <sched.h>

#include "util/relax.h"

#define SPINS 1000 /* tries to take a post lock */

void post_lock_init_all(struct post_locks *p)
{
	for (uint32_t i = 0; i < ENGINE_POST_LOCKS; i++) {
		lock_init(&p->of[i].lock);
		clock_init(&p->of[i].clock);
		post_gather_init(&p->of[i].gather);
	}
}

void post_lock_fini_all(struct post_locks *p)
{
	for (uint32_t i = 0; i < ENGINE_POST_LOCKS; i++)
		lock_fini(&p->of[i].lock);
}

/*
 * Takes a post lock.  If another thread has the lock, claims the lock first
 * (is_claimed): a thread that posts request after request releases the lock
 * only for moments, in which a thread that sleeps until the lock is free has no
 * time to wake up.
 */
static void take_claimed(struct post_lock *l) NO_LOCK_ANALYSIS
{
	if (lock_try(&l->lock))
		return;
	shared_store(&l->signs.is_claimed, true);
	lock_take(&l->lock);
	shared_store(&l->signs.is_claimed, false);
}

static void note_taken(struct post_locks *p)
{
	p->are_taken = true;
	p->vain_since_ns = 0;
}

void post_lock_take_all(struct post_locks *p) NO_LOCK_ANALYSIS
{
	for (uint32_t left = p->mask; left; left &= left - 1)
		take_claimed(&p->of[__builtin_ctz(left)]);
	note_taken(p);
}

bool post_lock_try_all(struct post_locks *p) NO_LOCK_ANALYSIS
{
	uint32_t taken = 0;

	for (uint32_t left = p->mask; left; left &= left - 1) {
		uint32_t number = (uint32_t)__builtin_ctz(left);

		if (!lock_try(&p->of[number].lock)) {
			for (; taken; taken &= taken - 1)
				lock_give(&p->of[__builtin_ctz(taken)].lock);
			return false;
		}
		taken |= 1u << number;
	}
	note_taken(p);
	return true;
}

bool post_lock_insist(struct post_locks *p, uint64_t now_ns)
{
	if (!p->vain_since_ns)
		p->vain_since_ns = now_ns;
	if (now_ns - p->vain_since_ns < POST_LOCK_VAIN_NS)
		return false;
	post_lock_take_all(p);
	return true;
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
	/* Locks are taken in the order of their numbers. */
	post_lock_give_all(p);
	p->mask |= 1u << number;
	post_lock_take_all(p);
}

bool post_lock_take_soon(struct post_lock *l) NO_LOCK_ANALYSIS
{
	for (uint32_t i = 0; i < SPINS; i++) {
		if (!shared_load(&l->signs.is_claimed) && lock_try(&l->lock))
			return true;
		relax();
	}
	/* The holder of the progress lock may have claimed this lock and wait
	 * for this thread's core.  If both threads have the same real-time
	 * priority, only this call lets that holder run. */
	sched_yield();
	return lock_try(&l->lock);
}

void post_lock_set_waiting(struct post_lock *l, struct ibt_qp *q)
{
	l->waiting = q;
	/* No reader needs the order of these two stores.  If
	 * post_lock_is_lively loads the old number of groups and then the new
	 * `waits`, its caller only makes progress earlier. */
	shared_store(&l->signs.groups, l->gather.groups);
	shared_store(&l->signs.waits, q != NULL);
}

struct ibt_qp *post_lock_take_over(struct post_locks *p,
				   uint64_t now_ns) NO_LOCK_ANALYSIS
{
	for (uint32_t left = p->mask; left; left &= left - 1) {
		struct post_lock *l = &p->of[__builtin_ctz(left)];
		struct ibt_qp *q = l->waiting;

		if (!q)
			continue;
		post_lock_set_waiting(l, NULL);
		post_gather_handed_over(&l->gather, now_ns);
		return q;
	}
	return NULL;
}

bool post_lock_serves(struct post_locks *p, uint64_t now_ns)
{
	uint32_t groups = 0;
	bool serves;

	for (uint32_t left = p->mask; left; left &= left - 1)
		groups += p->of[__builtin_ctz(left)].gather.groups;
	serves = post_gather_serves(&p->thread, groups,
				    shared_load(&p->is_wanted), now_ns);
	shared_store(&p->is_wanted, false);
	shared_store(&p->is_served, serves);
	return serves;
}

bool post_lock_is_lively(struct post_locks *p)
{
	bool is_lively = false, is_late = false;

	for (uint32_t i = 0; i < ENGINE_POST_LOCKS; i++) {
		struct post_lock *l = &p->of[i];
		uint32_t groups = shared_load(&l->signs.groups);

		is_late |= groups == l->groups_seen &&
			   shared_load(&l->signs.waits);
		is_lively |= groups != l->groups_seen;
		l->groups_seen = groups;
	}
	return is_lively && !is_late;
}
