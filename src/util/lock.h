/*
 * Locks.  `struct lock` is private to a process (a pthread mutex with clang's
 * thread-safety annotations).  `struct alock` lives in an arena that several
 * processes may map: one word, taken by compare-and-swap, waited for with a
 * pause and then sched_yield; it needs no initialisation beyond zero.
 * The order in which locks may be taken is in docs/ARCHITECTURE.md.
 */
#ifndef ADVERB_UTIL_LOCK_H
#define ADVERB_UTIL_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__clang__)
#define LOCK_ATTR(x) __attribute__((x))
#else
#define LOCK_ATTR(x)
#endif
#define CAPABILITY(x)	 LOCK_ATTR(capability(x))
#define GUARDED_BY(x)	 LOCK_ATTR(guarded_by(x))
#define REQUIRES(...)	 LOCK_ATTR(requires_capability(__VA_ARGS__))
#define ACQUIRE(...)	 LOCK_ATTR(acquire_capability(__VA_ARGS__))
#define RELEASE(...)	 LOCK_ATTR(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) LOCK_ATTR(try_acquire_capability(__VA_ARGS__))
#define NO_LOCK_ANALYSIS LOCK_ATTR(no_thread_safety_analysis)

struct CAPABILITY("mutex") lock {
	pthread_mutex_t m;
};

void lock_init(struct lock *l);
void lock_fini(struct lock *l);
void lock_take(struct lock *l) ACQUIRE(l);
bool lock_try(struct lock *l) TRY_ACQUIRE(true, l);
void lock_give(struct lock *l) RELEASE(l);

struct CAPABILITY("mutex") alock {
	_Atomic uint32_t word; /* 0 free, 1 held */
};

void alock_take(struct alock *l) ACQUIRE(l);
void alock_give(struct alock *l) RELEASE(l);

#endif
