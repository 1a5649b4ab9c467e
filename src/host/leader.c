/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/leader.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "host/sigrestart.h"
#include "host/waitset.h"
#include "util/bits.h"
#include "util/count.h"
#include "util/shared.h"

#define NS_PER_S       1000000000u
#define NAP_MIN_NS     50000
#define NAP_MAX_NS     250000
#define VAIN_MAX       64    /* events, then it is tried again */
#define ALONE_NS       10000 /* a yield that nobody wanted takes less */
#define SPIN_NS	       20000
#define CROWDED_NS     20000000
#define CROWDED_MAX_NS 1000000000
#define AT_WORK_NS     1000000 /* so long after a post the program is running */

static struct lock part;
static sem_t nap; /* posted: it is over */
static shared_flag is_open;
/* Programs asleep, with the one that has the part, */
static struct count sleepers;
static shared_flag is_minded; /* if there is one; */
static struct count comes;    /* so often one has gone to sleep, */
static shared_u32 shifts;     /* and so often with the part */

/* State that only the leader touches: */
static struct {
	struct waitset waitset;
	struct sigrestart sigrestart;
	sigset_t
		before; /* a program's mask, as inputs.mask: sigrestart_block */
	uint64_t crowded_ns, crowded_for_ns; /* others want the core */
} with_part = {.waitset = {.fd = -1}};

/* Our thread's. */
static struct {
	uint32_t told, comes; /* as they were before the turn, */
	uint32_t stood;	      /* comes, when it stood by last; */
	uint32_t vain;	      /* events, before it does again, */
	uint32_t left;	      /* and so many of them are to come */
} ours;

void leader_open(struct progress *l)
{
	sem_init(&nap, 0, 0);
	memset(&with_part, 0, sizeof(with_part));
	memset(&ours, 0, sizeof(ours));
	with_part.crowded_for_ns = CROWDED_NS;
	ours.stood = count_now(&comes);
	waitset_open(&with_part.waitset, l);
	shared_store(&is_open, 1);
}

void leader_close(struct progress *l)
{
	shared_store(&is_open, 0);
	shared_fence();
	progress_wake(l);
	sem_post(&nap);
}

void leader_take(void) NO_LOCK_ANALYSIS
{
	lock_take(&part);
}

void leader_give(void) NO_LOCK_ANALYSIS
{
	lock_give(&part);
}

void leader_closed(void) NO_LOCK_ANALYSIS
{
	lock_take(&part); /* a program may have it still */
	waitset_close(&with_part.waitset);
	lock_give(&part);
}

void leader_forget(void)
{
	lock_init(&part);
	waitset_close(&with_part.waitset);
	shared_store(&is_open, 0);
	shared_store(&is_minded, 0);
	sleepers = (struct count){0};
}

void leader_nap(struct progress *l, uint64_t ns)
{
	waitset_wait(&with_part.waitset, l, clock_real() + ns, 0);
}

/* Is the program at work on our core, by what it posted last? */
static bool shares_core(const struct progress *l)
{
	return shared_load(&l->activity.posted_on) ==
		       (uint32_t)sched_getcpu() &&
	       progress_ago_ns(shared_load(&l->activity.posted)) < AT_WORK_NS;
}

/*
 * Look again soon instead of sleeping: in a stream at once for as long as it
 * would take to be woken, then, and after whatever came, when nobody else
 * wants this core.  Else, and for a while that gets longer, not.
 */
static bool linger_awake(struct progress *l)
{
	uint64_t now = clock_real(),
		 left = poll_policy_lingers(&l->policy, now);
	uint64_t heard = now - l->policy.thread.heard_ns;

	poll_policy_thread_looked(&l->policy, now);
	if (poll_policy_pauses(&l->policy, now)) {
		/* A yield here would lose the core for milliseconds if other
		 * threads want it. */
		while (poll_policy_pauses(&l->policy, clock_real()))
			;
		return true;
	}
	if (left > POLL_POLICY_LINGER_NS - SPIN_NS)
		return true;
	if (!left &&
	    (heard > poll_policy_scaled(&l->policy, POLL_POLICY_LINGER_NS) ||
	     shares_core(l)))
		return false;
	if (now - with_part.crowded_ns <
	    (left ? CROWDED_NS : with_part.crowded_for_ns))
		return false;
	sched_yield();
	if (clock_real() - now > poll_policy_scaled(&l->policy, ALONE_NS)) {
		with_part.crowded_ns = now;
		with_part.crowded_for_ns = bits_min_u64(
			2 * with_part.crowded_for_ns, CROWDED_MAX_NS);
	} else {
		with_part.crowded_for_ns = CROWDED_NS;
	}
	return true;
}

/*
 * Waits as progress_rest has planned.  If posts may wait meanwhile, ends the
 * wait once they wait for long, or once none have waited for a while.  0 or
 * -EINTR.
 */
static int wait_as_planned(struct progress *l, const struct progress_rest *r)
{
	struct waitset *in = &with_part.waitset;
	uint64_t until;
	int err;

	do {
		until = r->until;
		if (r->minds)
			until = bits_min_u64(
				until, clock_real() + POST_GATHER_MIND_NS);
		err = waitset_wait(in, l, until, r->events);
	} while (!err && in->has_timed_out && until < r->until &&
		 post_lock_is_lively(&l->posts));
	return err;
}

/* One look, and the wait behind it.  0 or -EINTR. */
static int look_and_wait(struct progress *l, struct progress_rest *r)
{
	struct waitset *in = &with_part.waitset;
	int err = 0;

	r->is_deaf = in->is_deaf;
	in->is_deaf = false;
	if (!progress_rest(l, r)) {
		/* The thread that has the lock may have posted the event, and
		 * may hold the lock for long. */
		r->is_over = r->sleep->is_over(r->sleep->arg);
		return r->is_over ? 0
				  : waitset_wait(in, l,
						 clock_real() + NAP_MIN_NS, 0);
	}
	if (r->is_over)
		return 0;
	/* The event may have come while the lock was given: by ourselves, so
	 * nobody wakes us */
	r->is_over = r->sleep->is_over(r->sleep->arg);
	if (!r->is_over && !linger_awake(l))
		err = wait_as_planned(l, r);
	progress_rested(l);
	return err;
}

/* ---- our thread ---- */

/* Was one told of an event that slept here for it, and nobody else does?  Then
 * it will come back. */
static bool is_to_stand_by(void *progress)
{
	const struct progress *l = progress;

	return shared_load(&l->activity.events) != ours.told &&
	       ours.comes != ours.stood && count_now(&sleepers) <= 1 &&
	       !ours.left;
}

/* False: somebody has come meanwhile, did not get the part, and we have it
 * again. */
static bool give_up(uint32_t before) NO_LOCK_ANALYSIS
{
	lock_give(&part);
	shared_fence();
	return count_now(&comes) == before || !lock_try(&part);
}

static void doze_for(uint64_t ns)
{
	uint64_t end = clock_real() + ns;
	struct timespec t = {
		.tv_sec = (time_t)(end / NS_PER_S),
		.tv_nsec = (long)(end % NS_PER_S),
	};

	sem_clockwait(&nap, CLOCK_MONOTONIC, &t);
}

/* The program that leads sleeps on, and we with it; false: when it left, others
 * slept, and we have the part. */
static bool sleep_behind(void) NO_LOCK_ANALYSIS
{
	uint32_t before;

	lock_take(&part);
	before = count_now(&comes);
	return shared_load(&is_open) && !count_now(&sleepers) &&
	       give_up(before);
}

/* Waits until there is a nap in which no program became the leader.  A nap
 * costs the program's core two switches, so naps get longer. */
static void stand_by(void) NO_LOCK_ANALYSIS
{
	uint32_t seen = shared_load(&shifts), now;
	uint64_t ns = NAP_MIN_NS;
	bool came = false, stands;

	for (stands = give_up(ours.comes); stands; seen = now) {
		doze_for(ns);
		now = shared_load(&shifts);
		came |= now != seen;
		ns = bits_min_u64(2 * ns, NAP_MAX_NS);
		if (!shared_load(&is_minded)) {
			if (now == seen || count_now(&sleepers))
				stands = !lock_try(&part);
		} else if (now == seen || count_now(&sleepers) > 1) {
			stands = sleep_behind();
			ns = NAP_MIN_NS;
		}
	}
	ours.stood = count_now(&comes);
	ours.vain = came ? 0 : bits_min_u32(2 * ours.vain + 1, VAIN_MAX);
	ours.left = ours.vain;
}

void leader_turn(struct progress *l)
{
	const struct host_sleep until = {is_to_stand_by, l};
	struct progress_rest r = {.sleep = &until};

	ours.told = shared_load(&l->activity.events);
	ours.comes = count_now(&comes);
	look_and_wait(l, &r);
	if (is_to_stand_by(l))
		stand_by();
	else if (ours.left && shared_load(&l->activity.events) != ours.told)
		ours.left--;
}

/* ---- a program that sleeps ---- */

static void leave_part(void *progress) NO_LOCK_ANALYSIS
{
	const sigset_t *blocks = with_part.waitset.mask,
		       before = with_part.before;
	bool others;

	with_part.waitset.mask = NULL;
	progress_rested(progress); /* cancelled, it was not */
	shared_store(&is_minded, 0);
	count_down(&sleepers);
	others = count_now(&sleepers);
	lock_give(&part);
	if (others)
		sem_post(&nap);
	if (blocks) /* what has come is handled here */
		pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool enter_sleep(void) NO_LOCK_ANALYSIS
{
	count_up(&sleepers);
	count_up(&comes);
	if (count_now(&sleepers) > 1 || !lock_try(&part))
		return false;
	if (!shared_load(&is_open) ||
	    sigrestart_differ(&with_part.sigrestart)) {
		lock_give(&part);
		sem_post(&nap); /* the progress thread leads again */
		return false;
	}
	shared_store(&is_minded, 1);
	shared_store(&shifts, shared_own(&shifts) + 1);
	return true;
}

/* A signal between two waits ends the sleep as one in a wait does. */
static void heed_signals(void)
{
	if (sigrestart_block(&with_part.sigrestart, &with_part.before))
		with_part.waitset.mask = &with_part.before;
}

static bool is_interrupted(void)
{
	return with_part.waitset.mask &&
	       sigrestart_wait(&with_part.sigrestart, &with_part.before);
}

int leader_sleep(struct progress *l, const struct host_sleep *s)
{
	struct progress_rest r = {.sleep = s, .holds_acks = true};
	int err = 0;

	if (!enter_sleep())
		return 0;
	/* A thread is cancelled where it waits, not with the progress lock. */
	pthread_cleanup_push(leave_part, l);
	heed_signals();
	with_part.waitset.is_deaf = direct_select_is_quiet(&l->direct_select);
	do {
		err = look_and_wait(l, &r);
		if (err && !sigrestart_end(&with_part.sigrestart))
			err = 0;
		/* without a wait it is blocked still */
		if (!err && !r.is_over && is_interrupted())
			err = -EINTR;
	} while (!err && !r.is_over && shared_load(&is_open));
	pthread_cleanup_pop(1);
	if (err || r.is_over)
		return err ? err : 1;
	count_up(&sleepers); /* it is closed */
	return 0;
}

void leader_slept(void)
{
	count_down(&sleepers);
}
