/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks.
 *
 * struct lock is private to a process.  It is one word, which is zero when the
 * lock is free; a thread that waits sleeps in a futex.  Posts and polls take
 * locks, so a lock must be cheap: on x86-64 one atomic instruction takes the
 * lock, and another, which is also a full fence, releases it.  A pthread mutex
 * would cost more.
 *
 * struct alock lies in an arena that several processes may map.  It is one
 * word, which contains the name of the owner, or zero when the lock is free;
 * the lock is taken by compare-and-swap.  A waiter spins, then calls
 * sched_yield, then sleeps for short times.  The lock of a dead process is
 * inherited: the function that takes the lock reports this, and the caller
 * repairs what the dead process may have left half done.  The lock of a stopped
 * process is inherited only by alock_inherit: all other functions wait for that
 * process, or fail.
 *
 * docs/ARCHITECTURE.md has the order in which locks may be taken.
 */
#ifndef UTIL_LOCK_H
#define UTIL_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/shared.h"
#include "util/instrument.h"

/* The attributes of clang's thread safety analysis; empty with gcc. */
#if defined(__clang__)
#define LOCK_ATTR(x) __attribute__((x))
#else
#define LOCK_ATTR(x)
#endif
/* In a build with ThreadSanitizer the locks report themselves to its runtime,
 * which cannot recognise a lock by its atomic accesses. */
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
	_Atomic uint32_t word; /* 0: free, 1: taken, or LOCK_AWAITED */
};

#define LOCK_AWAITED 2 /* the lock is taken and a thread may sleep for it */

/* Initialises a free lock. */
void lock_init(struct lock *l);
/* Ends the use of the lock; aborts if the lock is taken. */
void lock_fini(struct lock *l);
/* Sleeps until the lock is free, and takes it.  Called only by lock_take. */
void lock_wait(struct lock *l);
/* Wakes one thread that sleeps in lock_wait.  Called only by lock_give. */
void lock_wake(struct lock *l);

/* Takes the lock if it is free, without waiting.  Returns whether the lock was
 * taken.  Acquire, with the exchange in lock_give: the caller's later loads see
 * the stores that the last owner made under the lock.  Otherwise the caller
 * could read a half-made change. */
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

/* Takes the lock, by an acquire as in lock_try; sleeps while another thread
 * holds the lock.  The lock is not recursive. */
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

/*
 * Releases the lock.  The exchange and the fence order the store of 0 before
 * the caller's later loads.  So a caller that looks for doorbells next sees
 * each doorbell that another thread pushed before that thread failed to take
 * this lock.  Without the order the other thread could fail to take the lock,
 * and this thread could miss the doorbell: no thread would serve that doorbell
 * until the next doorbell.  The exchange is also a release: the next owner sees
 * the caller's earlier stores.
 */
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

/* The name of a process as an owner of alocks; never 0 (memory/lock_owner.h).
 */
typedef uint64_t alock_owner;

/* The name of each process that has not called alock_open.  An owner of this
 * name never counts as dead. */
#define ALOCK_NAMELESS (1ull << 32)

struct CAPABILITY("mutex") alock {
	_Atomic alock_owner owner; /* 0: free */
};

/* The state of a thread of another process. */
enum alock_halt {
	/* The thread runs, or will run again without SIGCONT, or nothing is
	 * known about it. */
	ALOCK_RUNS,
	/* A signal has stopped the thread, at any instruction. */
	ALOCK_STOPPED,
	/* A signal has stopped the thread as it returned from
	 * process_vm_readv(2) or process_vm_writev(2): the copy is over. */
	ALOCK_STOPPED_AFTER_COPY,
};

/* Functions that find out the state of other processes.  Their caller may hold
 * locks. */
struct alock_judge {
	/* Returns whether the process of this name has ended. */
	bool (*is_dead)(alock_owner owner);
	/* Reports an owner for which a thread has waited a second. */
	void (*report_slow)(alock_owner owner);
	/* Returns the state of a thread, by its thread id.  NULL: all threads
	 * run. */
	enum alock_halt (*halt_of)(uint32_t thread);
	/* Called instead of a wait, in a simulation, which has no clock: runs
	 * the other processes, and returns whether the owner is dead.  NULL:
	 * waits take time. */
	bool (*wait)(alock_owner owner);
};

/*
 * Sets the name under which this process takes alocks from now on, and the
 * judge, which must stay valid; NULL: no judge.  The first call precedes the
 * time at which another process can see the locks.  A child of fork calls this
 * function before it takes an alock.  Without a call the process is
 * ALOCK_NAMELESS and inherits no lock.
 */
void alock_open(alock_owner self, const struct alock_judge *judge);
/* Returns the name that alock_open has set. */
alock_owner alock_self(void);
/* Waits for the lock and takes it.  Returns true if the lock was inherited from
 * a dead process. */
bool alock_take(struct alock *l) ACQUIRE(l);
/*
 * Waits for the lock and takes it, but waits for a live owner no longer than a
 * running owner would hold the lock.  Returns true if the lock was taken; then
 * *inherited tells whether the lock was inherited from a dead process.
 */
bool alock_take_soon(struct alock *l, bool *inherited) TRY_ACQUIRE(true, l);
/* Takes the lock if it is free or its owner is dead, without waiting.  Returns
 * true if the lock was taken; *inherited is true if the owner was dead. */
bool alock_try(struct alock *l, bool *inherited) TRY_ACQUIRE(true, l);
/* Releases the lock.  Release, with the acquire of each function that takes the
 * lock: the next owner sees this owner's stores.  Otherwise the next owner
 * could read a half-made change. */
void alock_give(struct alock *l) RELEASE(l);
/* Returns whether `owner` is the name of another process that is dead. */
bool alock_is_dead(alock_owner owner);
/* Takes the lock from the owner `from`.  That owner must access nothing under
 * the lock any more, and may release the lock only by alock_leave.  Returns
 * false if `from` does not own the lock any more. */
bool alock_inherit(struct alock *l, alock_owner from) TRY_ACQUIRE(true, l);
/* Releases the lock, as alock_give does, unless another process has inherited
 * the lock meanwhile. */
void alock_leave(struct alock *l) RELEASE(l);
/* Returns the caller's thread id, as alock_halt_of takes it. */
uint32_t alock_thread(void);
/* Returns the state of a thread; ALOCK_RUNS if no judge with `halt_of` is set.
 */
enum alock_halt alock_halt_of(uint32_t thread);
/* Returns the owner; 0: the lock was free at the time of the load.  Acquire,
 * with the release in alock_give and alock_leave: after 0 the caller's later
 * loads see the stores that the last owner made under the lock.  Otherwise the
 * caller could find the lock free and read what was there before these stores
 * (rq_settle: is_torn). */
alock_owner alock_holder(const struct alock *l);

/* The state of a wait for another process; initially all zero. */
struct alock_wait {
	uint32_t tries;	   /* calls of alock_wait */
	bool is_late;	   /* a running owner would have released by now */
	bool is_said;	   /* report_slow was called */
	uint64_t since_ns; /* the time of the first yield; 0: none so far */
};

/* The number of tries after which alock_wait sets is_late. */
#define ALOCK_SOON 1000
/* Waits a little: spins, yields or sleeps, or calls the judge's `wait`.  Sets
 * w->is_late after ALOCK_SOON tries, or earlier if yields take long.  Returns
 * true if `owner` was found to be dead. */
bool alock_wait(struct alock_wait *w, alock_owner owner);

#endif
