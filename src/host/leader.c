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
#include "util/monotonic.h"
#include "util/shared.h"

#define NS_PER_S       1000000000u
#define NAP_MIN_NS     50000
#define NAP_MAX_NS     250000
#define VAIN_MAX       64	  /* the most that thread_state.vain grows to */
#define ALONE_NS       10000	  /* sched_yield takes less on a free core */
#define SPIN_NS	       20000	  /* after a datagram of a stream: no yields */
#define CROWDED_NS     20000000	  /* after a slow yield: no yields */
#define CROWDED_MAX_NS 1000000000 /* the most that crowded_for_ns grows to */
#define AT_WORK_NS     1000000	  /* how long the program works after a post */

/* The leader holds this lock. */
static struct lock leader_lock;
static sem_t nap; /* sem_post ends the nap of the progress thread */
/* leader_open was called, and leader_close was not called since. */
static shared_flag is_open;
/* Threads of the program that sleep for an event, the leader included. */
static struct count sleepers;
/* A thread of the program leads. */
static shared_flag program_leads;
/* How often a thread of the program has gone to sleep. */
static struct count sleeps_begun;
/* How often a thread of the program has begun to lead. */
static shared_u32 leads_begun;

/* State that only the leader reads and writes, under leader_lock. */
static struct {
	struct waitset waitset;
	struct sigrestart sigrestart;
	/* The leading thread's signal mask from before sigrestart_block. */
	sigset_t before;
	/* When a yield last showed that other threads want this core. */
	uint64_t crowded_ns;
	/* Outside a stream: for how long after crowded_ns no yield is tried. */
	uint64_t crowded_for_ns;
} leader_state = {.waitset = {.fd = -1}};

/* The progress thread's own state. */
static struct {
	uint32_t events_before; /* activity.events before the turn */
	uint32_t sleeps_begun;	/* the count sleeps_begun before the turn */
	/* The count sleeps_begun when the thread last stopped following. */
	uint32_t followed_at;
	/* `left` starts with this value.  The value grows each time that the
	 * thread follows and no thread of the program leads meanwhile. */
	uint32_t vain;
	/* Turns with an event until the thread may follow again. */
	uint32_t left;
} thread_state;

void leader_open(struct progress *p)
{
	sem_init(&nap, 0, 0);
	memset(&leader_state, 0, sizeof(leader_state));
	memset(&thread_state, 0, sizeof(thread_state));
	leader_state.crowded_for_ns = CROWDED_NS;
	thread_state.followed_at = count_now(&sleeps_begun);
	waitset_open(&leader_state.waitset, p);
	shared_store(&is_open, 1);
}

void leader_close(struct progress *p)
{
	shared_store(&is_open, 0);
	/* Orders the store of is_open before the write to the eventfd.  Without
	 * this fence a leader that the write wakes could still load the old
	 * is_open and wait again. */
	shared_fence();
	progress_wake(p);
	sem_post(&nap);
}

void leader_take(void) NO_LOCK_ANALYSIS
{
	lock_take(&leader_lock);
}

void leader_give(void) NO_LOCK_ANALYSIS
{
	lock_give(&leader_lock);
}

void leader_closed(void) NO_LOCK_ANALYSIS
{
	lock_take(&leader_lock); /* a thread of the program may still have it */
	waitset_close(&leader_state.waitset);
	lock_give(&leader_lock);
}

void leader_forget(void)
{
	lock_init(&leader_lock);
	waitset_close(&leader_state.waitset);
	shared_store(&is_open, 0);
	shared_store(&program_leads, 0);
	sleepers = (struct count){0};
}

void leader_nap(struct progress *p, uint64_t ns)
{
	waitset_nap(&leader_state.waitset, p, monotonic_ns() + ns);
}

/* Did the program post on this core a moment ago?  Then it is probably still at
 * work here. */
static bool shares_core(const struct progress *p)
{
	return shared_load(&p->activity.posted_on) ==
		       (uint32_t)sched_getcpu() &&
	       progress_ago_ns(shared_load(&p->activity.posted)) < AT_WORK_NS;
}

/*
 * Does the leader look again at once instead of sleeping?
 *
 * For SPIN_NS after the last datagram of a stream, the leader looks again
 * without a yield; a wake-up takes about as long.  For the rest of
 * POLL_POLICY_LINGER_NS the leader yields the core before each look.  After any
 * other datagram the leader yields before each look, from the first look on; if
 * the program is at work on this core, the leader sleeps instead.
 *
 * A yield that takes long shows that other threads want the core.  Then the
 * leader tries no yield for a while and sleeps instead: for CROWDED_NS in a
 * stream, else for a time that doubles with each such yield.
 */
static bool linger_awake(struct progress *p)
{
	uint64_t now = monotonic_ns(),
		 left = poll_policy_lingers(&p->policy, now);
	uint64_t heard = now - p->policy.thread.heard_ns;

	poll_policy_thread_looked(&p->policy, now);
	if (poll_policy_pauses(&p->policy, now)) {
		/* Spins until the backoff permits a look.  A yield instead
		 * would lose the core for milliseconds if other threads want
		 * the core. */
		while (poll_policy_pauses(&p->policy, monotonic_ns()))
			;
		return true;
	}
	if (left > POLL_POLICY_LINGER_NS - SPIN_NS)
		return true;
	if (!left &&
	    (heard > poll_policy_scaled(&p->policy, POLL_POLICY_LINGER_NS) ||
	     shares_core(p)))
		return false;
	if (now - leader_state.crowded_ns <
	    (left ? CROWDED_NS : leader_state.crowded_for_ns))
		return false;
	sched_yield();
	if (monotonic_ns() - now > poll_policy_scaled(&p->policy, ALONE_NS)) {
		leader_state.crowded_ns = now;
		leader_state.crowded_for_ns = bits_min_u64(
			2 * leader_state.crowded_for_ns, CROWDED_MAX_NS);
	} else {
		leader_state.crowded_for_ns = CROWDED_NS;
	}
	return true;
}

/*
 * Waits as progress_rest has planned.  If posts may wait meanwhile, checks them
 * each POST_GATHER_MIND_NS.  Ends the wait if a post that waited at the last
 * check still waits, or if no group of posts has begun since that check.
 * Returns 0 or -EINTR.
 */
static int wait_as_planned(struct progress *p, const struct progress_rest *r)
{
	struct waitset *in = &leader_state.waitset;
	uint64_t until;
	int err;

	do {
		until = r->until;
		if (r->serves)
			until = bits_min_u64(
				until, monotonic_ns() + POST_GATHER_MIND_NS);
		err = waitset_wait(in, p, until, r->events);
	} while (!err && in->has_timed_out && until < r->until &&
		 post_lock_is_lively(&p->posts));
	return err;
}

/* Makes progress once, and then waits unless there is a reason to look again.
 * Returns 0 or -EINTR. */
static int look_and_wait(struct progress *p, struct progress_rest *r)
{
	struct waitset *in = &leader_state.waitset;
	int err = 0;

	r->socket_is_empty = in->socket_is_empty;
	in->socket_is_empty = false;
	if (!progress_rest(p, r)) {
		/* The thread that has the progress lock may already have
		 * reported the event, and may keep the lock for long. */
		r->is_over = r->sleep->is_over(r->sleep->arg);
		return r->is_over ? 0
				  : waitset_nap(in, p,
						monotonic_ns() + NAP_MIN_NS);
	}
	if (r->is_over)
		return 0;
	/* This thread may itself have reported the event when it released the
	 * progress lock; then no other thread would wake it. */
	r->is_over = r->sleep->is_over(r->sleep->arg);
	if (!r->is_over && !linger_awake(p))
		err = wait_as_planned(p, r);
	progress_rested(p);
	return err;
}

/* ---- the progress thread ---- */

/*
 * May the progress thread follow?  It may after a turn that reported an event,
 * if a thread of the program has called leader_sleep since the progress thread
 * last followed, at most one such thread sleeps now, and `left` is 0.  Then the
 * thread that handles the event will probably call leader_sleep again and lead.
 */
static bool should_follow(void *progress)
{
	const struct progress *p = progress;

	return shared_load(&p->activity.events) != thread_state.events_before &&
	       thread_state.sleeps_begun != thread_state.followed_at &&
	       count_now(&sleepers) <= 1 && !thread_state.left;
}

/*
 * Releases leader_lock.  @before: sleeps_begun at an earlier time.  False: a
 * thread of the program has gone to sleep since then, and may have found the
 * lock taken.  This function has then taken the lock again, and the caller
 * leads.
 */
static bool release_lock(uint32_t before) NO_LOCK_ANALYSIS
{
	lock_give(&leader_lock);
	/* Orders the store that releases the lock before the load of
	 * sleeps_begun.  A thread that goes to sleep stores sleeps_begun before
	 * it tries the lock.  Without this fence that thread could find the
	 * lock taken while this thread misses its store, and no thread would
	 * lead. */
	shared_fence();
	return count_now(&sleeps_begun) == before || !lock_try(&leader_lock);
}

static void nap_for(uint64_t ns)
{
	uint64_t end = monotonic_ns() + ns;
	struct timespec t = {
		.tv_sec = (time_t)(end / NS_PER_S),
		.tv_nsec = (long)(end % NS_PER_S),
	};

	sem_clockwait(&nap, CLOCK_MONOTONIC, &t);
}

/*
 * Sleeps until the thread of the program that leads stops leading.  True: the
 * caller continues to follow.  False: the caller has leader_lock and leads,
 * because another thread of the program sleeps or leader_close was called.
 */
static bool sleep_under_leader(void) NO_LOCK_ANALYSIS
{
	uint32_t before;

	lock_take(&leader_lock);
	before = count_now(&sleeps_begun);
	return shared_load(&is_open) && !count_now(&sleepers) &&
	       release_lock(before);
}

/*
 * Releases leader_lock, and naps as long as threads of the program lead again
 * and again.  If one thread leads for longer than a nap, or a second thread
 * sleeps, waits until the leading thread stops leading.  Takes leader_lock back
 * when no thread of the program leads, and either no thread began to lead
 * during a nap or a thread sleeps without leading.  A nap costs the program's
 * core two thread switches, so naps get longer.
 */
static void follow_programs(void) NO_LOCK_ANALYSIS
{
	uint32_t seen = shared_load(&leads_begun), now;
	uint64_t ns = NAP_MIN_NS;
	bool came = false, follows;

	for (follows = release_lock(thread_state.sleeps_begun); follows;
	     seen = now) {
		nap_for(ns);
		now = shared_load(&leads_begun);
		came |= now != seen;
		ns = bits_min_u64(2 * ns, NAP_MAX_NS);
		if (!shared_load(&program_leads)) {
			if (now == seen || count_now(&sleepers))
				follows = !lock_try(&leader_lock);
		} else if (now == seen || count_now(&sleepers) > 1) {
			follows = sleep_under_leader();
			ns = NAP_MIN_NS;
		}
	}
	thread_state.followed_at = count_now(&sleeps_begun);
	thread_state.vain =
		came ? 0 : bits_min_u32(2 * thread_state.vain + 1, VAIN_MAX);
	thread_state.left = thread_state.vain;
}

void leader_turn(struct progress *p)
{
	const struct host_sleep until = {should_follow, p};
	struct progress_rest r = {.sleep = &until};

	thread_state.events_before = shared_load(&p->activity.events);
	thread_state.sleeps_begun = count_now(&sleeps_begun);
	look_and_wait(p, &r);
	if (should_follow(p))
		follow_programs();
	else if (thread_state.left &&
		 shared_load(&p->activity.events) != thread_state.events_before)
		thread_state.left--;
}

/* ---- a thread of the program that sleeps ---- */

static void stop_leading(void *progress) NO_LOCK_ANALYSIS
{
	const sigset_t *blocks = leader_state.waitset.mask,
		       before = leader_state.before;
	bool others;

	leader_state.waitset.mask = NULL;
	/* If this thread was cancelled in its wait, look_and_wait has not
	 * called progress_rested. */
	progress_rested(progress);
	shared_store(&program_leads, 0);
	count_down(&sleepers);
	others = count_now(&sleepers);
	lock_give(&leader_lock);
	if (others)
		sem_post(&nap);
	if (blocks) /* runs the handlers of signals that came meanwhile */
		pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Counts the calling thread as a sleeper.  True: the thread leads. */
static bool begin_sleep(void) NO_LOCK_ANALYSIS
{
	count_up(&sleepers);
	/* The sleep is counted before the lock is tried: release_lock says why.
	 */
	count_up(&sleeps_begun);
	if (count_now(&sleepers) > 1 || !lock_try(&leader_lock))
		return false;
	if (!shared_load(&is_open) ||
	    sigrestart_differ(&leader_state.sigrestart)) {
		lock_give(&leader_lock);
		sem_post(&nap); /* the progress thread leads again */
		return false;
	}
	shared_store(&program_leads, 1);
	shared_store(&leads_begun, shared_own(&leads_begun) + 1);
	return true;
}

/* Blocks the signals that end a wait.  A signal that arrives between two waits
 * then stays pending, and ends the next wait. */
static void block_signals(void)
{
	if (sigrestart_block(&leader_state.sigrestart, &leader_state.before))
		leader_state.waitset.mask = &leader_state.before;
}

/* Is a signal pending that ends the sleep? */
static bool is_interrupted(void)
{
	return leader_state.waitset.mask &&
	       sigrestart_is_pending(&leader_state.sigrestart,
				     &leader_state.before);
}

int leader_sleep(struct progress *p, const struct host_sleep *s)
{
	struct progress_rest r = {.sleep = s, .holds_acks = true};
	int err = 0;

	if (!begin_sleep())
		return 0;
	/* The thread can be cancelled only in its wait, not while it has the
	 * progress lock. */
	pthread_cleanup_push(stop_leading, p);
	block_signals();
	leader_state.waitset.socket_is_empty =
		direct_select_is_quiet(&p->direct_select);
	do {
		err = look_and_wait(p, &r);
		if (err && !sigrestart_end(&leader_state.sigrestart))
			err = 0;
		/* A signal that came while this thread did not wait is still
		 * pending. */
		if (!err && !r.is_over && is_interrupted())
			err = -EINTR;
	} while (!err && !r.is_over && shared_load(&is_open));
	pthread_cleanup_pop(1);
	if (err || r.is_over)
		return err ? err : 1;
	count_up(&sleepers); /* until leader_slept */
	return 0;
}

void leader_slept(void)
{
	count_down(&sleepers);
}
