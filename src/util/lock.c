#include "util/lock.h"

#include <sched.h>

#include "util/check.h"

void lock_init(struct lock *l)
{
	CHECK(pthread_mutex_init(&l->m, 0) == 0);
}

void lock_fini(struct lock *l)
{
	CHECK(pthread_mutex_destroy(&l->m) == 0);
}

void lock_take(struct lock *l) NO_LOCK_ANALYSIS
{
	CHECK(pthread_mutex_lock(&l->m) == 0);
}

bool lock_try(struct lock *l) NO_LOCK_ANALYSIS
{
	return pthread_mutex_trylock(&l->m) == 0;
}

void lock_give(struct lock *l) NO_LOCK_ANALYSIS
{
	CHECK(pthread_mutex_unlock(&l->m) == 0);
}

#define ALOCK_SPINS 100 /* then yield: the holder may be on our core */

void alock_take(struct alock *l) NO_LOCK_ANALYSIS
{
	for (unsigned tries = 0;; tries++) {
		uint32_t free_word = 0;

		if (atomic_compare_exchange_weak_explicit(
			    &l->word, &free_word, 1, memory_order_acquire,
			    memory_order_relaxed))
			return;
		if (tries < ALOCK_SPINS)
			__builtin_ia32_pause();
		else
			sched_yield();
	}
}

void alock_give(struct alock *l) NO_LOCK_ANALYSIS
{
	atomic_store_explicit(&l->word, 0, memory_order_release);
}
