/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/check.h"
#include "util/monotonic.h"
#include "util/relax.h"

void lock_init(struct lock *l)
{
	LOCK_SAYS(__tsan_mutex_create(l, 0));
	atomic_init(&l->word, 0);
}

void lock_fini(struct lock *l)
{
	CHECK(!atomic_load(&l->word));
	LOCK_SAYS(__tsan_mutex_destroy(l, 0));
}

static void futex_call(struct lock *l, int op, uint32_t n)
{
	int before = errno;

	syscall(SYS_futex, &l->word, op | FUTEX_PRIVATE_FLAG, n, NULL);
	errno = before;
}

/* Takes the lock as LOCK_AWAITED, so that the next lock_give wakes a thread: a
 * thread that has slept cannot tell whether another thread still sleeps, and
 * lock_give wakes only one. */
void lock_wait(struct lock *l)
{
	while (atomic_exchange_explicit(&l->word, LOCK_AWAITED,
					memory_order_acquire))
		futex_call(l, FUTEX_WAIT, LOCK_AWAITED);
}

void lock_wake(struct lock *l)
{
	futex_call(l, FUTEX_WAKE, 1);
}

/* After this many tries a waiter yields, since the owner may need this
 * processor. */
#define SPINS 100
/* After this time, or ALOCK_SOON tries, a waiter yields no more: each further
 * call of alock_wait asks whether the owner is dead, and sleeps.  On a busy
 * machine one sched_yield may last milliseconds. */
#define YIELD_NS 300000
#define NAP_NS	 100000	     /* the length of one sleep */
#define SLOW_NS	 1000000000u /* after this wait the owner is reported */

static _Atomic alock_owner self = ALOCK_NAMELESS;
static const struct alock_judge *_Atomic judge;
static _Atomic uint32_t opened; /* calls of alock_open */

void alock_open(alock_owner name, const struct alock_judge *j)
{
	atomic_fetch_add(&opened, 1);
	atomic_store(&judge, j);
	atomic_store(&self, name);
}

alock_owner alock_self(void)
{
	return atomic_load_explicit(&self, memory_order_relaxed);
}

alock_owner alock_holder(const struct alock *l)
{
	return atomic_load_explicit(&l->owner, memory_order_acquire);
}

/* Returns the judge if `owner` is the name of another process that has called
 * alock_open; otherwise NULL.  A caller that has read the owner again, after a
 * wait, may pass 0: the lock was released meanwhile. */
static const struct alock_judge *judge_of(alock_owner owner)
{
	if (!owner || owner == ALOCK_NAMELESS || owner == alock_self())
		return NULL;
	return atomic_load(&judge);
}

bool alock_is_dead(alock_owner owner)
{
	const struct alock_judge *j = judge_of(owner);

	return j && j->is_dead(owner);
}

static void nap_for(struct alock_wait *w, alock_owner owner)
{
	const struct alock_judge *j = judge_of(owner);
	const struct timespec t = {0, NAP_NS};

	if (!w->is_said && j && monotonic_ns() - w->since_ns > SLOW_NS) {
		w->is_said = true;
		j->report_slow(owner);
	}
	/* The system call is made directly: libc's nanosleep is a cancellation
	 * point, and a waiter that is cancelled here would keep its other
	 * locks. */
	syscall(SYS_nanosleep, &t, NULL);
}

static void yield_turn(struct alock_wait *w)
{
	if (!w->since_ns)
		w->since_ns = monotonic_ns();
	sched_yield();
	w->is_late = w->tries + 1 >= ALOCK_SOON ||
		     monotonic_ns() - w->since_ns > YIELD_NS;
}

bool alock_wait(struct alock_wait *w, alock_owner owner)
{
	const struct alock_judge *j = atomic_load(&judge);

	w->tries++;
	if (j && j->wait) {
		w->is_late = w->tries + 1 >= ALOCK_SOON;
		return j->wait(owner);
	}
	if (w->tries < SPINS) {
		relax();
		return false;
	}
	if (!w->is_late) {
		yield_turn(w);
		return false;
	}
	if (alock_is_dead(owner))
		return true;
	nap_for(w, owner);
	return false;
}

static bool swap_owner(struct alock *l, alock_owner *from)
{
	return atomic_compare_exchange_strong_explicit(
		&l->owner, from, alock_self(), memory_order_acquire,
		memory_order_relaxed);
}

bool alock_take(struct alock *l) NO_LOCK_ANALYSIS
{
	struct alock_wait w = {0};
	alock_owner found = 0;

	while (!swap_owner(l, &found)) {
		/* A dead owner stays the owner until a thread inherits the
		 * lock. */
		if (alock_wait(&w, found) && swap_owner(l, &found))
			return true;
		found = 0;
	}
	return false;
}

bool alock_take_soon(struct alock *l, bool *inherited) NO_LOCK_ANALYSIS
{
	struct alock_wait w = {0};
	alock_owner found = 0;

	while (!swap_owner(l, &found)) {
		if (w.is_late || alock_wait(&w, found))
			return alock_try(l, inherited);
		found = 0;
	}
	*inherited = false;
	return true;
}

bool alock_try(struct alock *l, bool *inherited) NO_LOCK_ANALYSIS
{
	alock_owner found = 0;

	*inherited = false;
	if (swap_owner(l, &found))
		return true;
	*inherited = alock_is_dead(found) && swap_owner(l, &found);
	return *inherited;
}

void alock_give(struct alock *l) NO_LOCK_ANALYSIS
{
	atomic_store_explicit(&l->owner, 0, memory_order_release);
}

bool alock_inherit(struct alock *l, alock_owner from) NO_LOCK_ANALYSIS
{
	return swap_owner(l, &from);
}

void alock_leave(struct alock *l) NO_LOCK_ANALYSIS
{
	alock_owner own = alock_self();

	atomic_compare_exchange_strong_explicit(
		&l->owner, &own, 0, memory_order_release, memory_order_relaxed);
}

uint32_t alock_thread(void)
{
	/* A child of fork has a copy of its parent's `thread`.  The child calls
	 * alock_open before it takes an alock, and the id is read again. */
	static _Thread_local uint32_t thread, known_at;
	uint32_t now = atomic_load_explicit(&opened, memory_order_relaxed);

	if (!thread || known_at != now)
		thread = (uint32_t)gettid();
	known_at = now;
	return thread;
}

enum alock_halt alock_halt_of(uint32_t thread)
{
	const struct alock_judge *j = atomic_load(&judge);

	return j && j->halt_of ? j->halt_of(thread) : ALOCK_RUNS;
}
