/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks.  `struct lock` is private to a process: one word, waited for with a
 * futex, zero when it is free.  It is a pthread mutex but for what that costs:
 * a post or a poll takes one, which here is an instruction each way, and the
 * one that gives it is a fence.  `struct alock` lives in an arena that several
 * processes may map: one word that names its owner, taken by
 * compare-and-swap, waited for with a pause, then sched_yield, then short
 * sleeps; it needs no initialisation beyond zero.  The lock of a process that
 * died is inherited: whoever takes it hears so, and puts right what may be
 * half done.  One that is stopped is waited for.
 * The order in which locks may be taken is in docs/ARCHITECTURE.md.
 */
#ifndef UTIL_LOCK_H
#define UTIL_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/shared.h"
#include "util/instrument.h"

#if defined(__clang__)
#define LOCK_ATTR(x) __attribute__((x))
#else
#define LOCK_ATTR(x)
#endif
/* ThreadSanitizer knows the order of locks by what they tell it. */
#if defined(INSTRUMENT_ITSELF)
#include <sanitizer/tsan_interface.h>
#define LOCK_SAYS(x) x
#else
#define LOCK_SAYS(x) (void)0
#endif
#define CAPABILITY(x)	 LOCK_ATTR(capability(x))
#define GUARDED_BY(x)	 LOCK_ATTR(guarded_by(x))
#define REQUIRES(...)	 LOCK_ATTR(requires_capability(__VA_ARGS__))
#define ACQUIRE(...)	 LOCK_ATTR(acquire_capability(__VA_ARGS__))
#define RELEASE(...)	 LOCK_ATTR(release_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) LOCK_ATTR(try_acquire_capability(__VA_ARGS__))
#define NO_LOCK_ANALYSIS LOCK_ATTR(no_thread_safety_analysis)

struct CAPABILITY("mutex") lock {
	_Atomic uint32_t word; /* 0: free, 1: taken, LOCK_AWAITED */
};

#define LOCK_AWAITED 2 /* taken, and somebody sleeps for it */

void lock_init(struct lock *l);
void lock_fini(struct lock *l);
void lock_wait(struct lock *l); /* and take it */
void lock_wake(struct lock *l);

static inline bool lock_try(struct lock *l)
	TRY_ACQUIRE(true, l) NO_LOCK_ANALYSIS
{
	uint32_t free = 0;
	bool is_ours;

	LOCK_SAYS(__tsan_mutex_pre_lock(l, __tsan_mutex_try_lock));
	is_ours = atomic_compare_exchange_strong_explicit(
		&l->word, &free, 1, memory_order_acquire, memory_order_relaxed);
	LOCK_SAYS(__tsan_mutex_post_lock(
		l,
		__tsan_mutex_try_lock |
			(is_ours ? 0 : __tsan_mutex_try_lock_failed),
		0));
	if (is_ours)
		instrument_ignore();
	return is_ours;
}

static inline void lock_take(struct lock *l) ACQUIRE(l) NO_LOCK_ANALYSIS
{
	uint32_t free = 0;

	LOCK_SAYS(__tsan_mutex_pre_lock(l, 0));
	if (!atomic_compare_exchange_strong_explicit(&l->word, &free, 1,
						     memory_order_acquire,
						     memory_order_relaxed))
		lock_wait(l);
	LOCK_SAYS(__tsan_mutex_post_lock(l, 0, 0));
	instrument_ignore();
}

/* What the caller reads next is read after others see that it is free. */
static inline void lock_give(struct lock *l) RELEASE(l) NO_LOCK_ANALYSIS
{
	instrument_ignore_end();
	LOCK_SAYS(__tsan_mutex_pre_unlock(l, 0));
	if (atomic_exchange_explicit(&l->word, 0, memory_order_seq_cst) ==
	    LOCK_AWAITED)
		lock_wake(l);
	shared_fence_after_exchange();
	LOCK_SAYS(__tsan_mutex_post_unlock(l, 0));
}

/* Names a process to those who share memory with it; never 0. */
typedef uint64_t alock_owner;

#define ALOCK_NAMELESS (1ull << 32) /* nobody asks whether it lives */

struct CAPABILITY("mutex") alock {
	_Atomic alock_owner owner; /* 0: free */
};

/* Where a thread stands. */
enum alock_halt {
	ALOCK_RUNS,    /* or will, without being told to */
	ALOCK_STOPPED, /* a signal took it off its processor, anywhere */
	/* The same, at the end of a system call by which memory of others is
	 * reached. */
	ALOCK_STOPPED_AFTER_COPY,
};

/* What is known of other processes; called while waiting, without a lock. */
struct alock_judge {
	bool (*is_dead)(alock_owner owner);
	void (*is_slow)(alock_owner owner); /* a second was waited for it */
	enum alock_halt (*halt_of)(uint32_t thread);
	/* NULL, or how to wait where there is no time: let others go on; true
	 * when it is dead. */
	bool (*wait)(alock_owner owner);
};

/*
 * The name under which this process takes locks from here on, and who judges
 * others; before another process can see the locks.  Without it all are
 * nameless and nobody inherits.
 */
void alock_open(alock_owner self, const struct alock_judge *judge);
alock_owner alock_self(void);
/* True: inherited. */
bool alock_take(struct alock *l) ACQUIRE(l);
/*
 * The same, but whoever lives and does not let go is waited for no longer than
 * one that runs would need: false.
 */
bool alock_take_soon(struct alock *l, bool *inherited) TRY_ACQUIRE(true, l);
/* Takes it if it is free, or inherits it, without waiting for anybody. */
bool alock_try(struct alock *l, bool *inherited) TRY_ACQUIRE(true, l);
void alock_give(struct alock *l) RELEASE(l);
bool alock_is_dead(alock_owner owner);
/* Takes over from who will never give it; false: somebody else did. */
bool alock_inherit(struct alock *l, alock_owner from) TRY_ACQUIRE(true, l);
/* Gives it, unless somebody has inherited it. */
void alock_leave(struct alock *l) RELEASE(l);
/* The thread that asks, as halt_of knows it. */
uint32_t alock_thread(void);
enum alock_halt alock_halt_of(uint32_t thread);
/* The owner, or 0 if the lock seems free. */
alock_owner alock_holder(const struct alock *l);

/* A wait for another process; starts as {0}. */
struct alock_wait {
	uint32_t tries;
	bool is_late; /* who runs would have let go */
	bool is_said;
	uint64_t since_ns; /* of the first yield; 0: only spun */
};

/* Waits a little; true when `owner` is dead.  It is late after so many of it,
 * or sooner where each takes long. */
#define ALOCK_SOON 1000
bool alock_wait(struct alock_wait *w, alock_owner owner);

#endif
