/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of a thread of the program that polls, rings a doorbell or sleeps
 * for a completion.  Only host_await_accesses takes a lock itself.  The
 * comments of the called functions say which locks these functions take.
 */
#include "host/host.h"

#include "hca/access.h"
#include "host/inside.h"
#include "host/leader.h"
#include "host/post.h"
#include "host/progress_thread.h"
#include "host/yield.h"
#include "util/bits.h"

#define POLL_YIELD    64    /* empty polls between yields of the core */
#define SWITCH_MIN_NS 600   /* in a longer yield another thread ran */
#define SWITCH_MAX_NS 50000 /* in a longer yield a thread computed */

/* Wakes the progress thread if a thread that collected completions has set a
 * notify bit for it: peers wake it only for bits that they set themselves.
 * shared_publish in notify_post orders the store of the bit before the load of
 * is_asleep; engine_asleep says what breaks without that order. */
static void wake_for_notify(struct host *h)
{
	if (notify_pending(&h->hca) && shared_load(&h->hca.shared->is_asleep))
		progress_wake(&h->progress);
}

void host_await_accesses(struct host *h, access_set what)
{
	host_quiesce(h);
	access_wait(&h->hca, what);
	host_lock(h);
	eager_settle(&h->hca);
	host_unlock(h);
	wake_for_notify(h);
}

void host_doorbell(struct host *h, struct ibt_qp *side, uint64_t bytes)
{
	post_doorbell(&h->progress, side,
		      (uint32_t)bits_min_u64(bytes, UINT32_MAX / 2));
}

void host_before_poll(struct host *h, const struct cq *cq)
{
	post_polled(&h->progress, engine_post_lock_of(cq));
}

/* Does the work of one poll: ends a wait of a QP that has the same post lock as
 * the QPs that complete requests into cq, if post_resume can.  If it cannot, or
 * cq is NULL, makes progress instead. */
static void poll_once(struct host *h, const struct cq *cq, shared_u32 *skipped)
{
	if (!cq || !post_resume(&h->progress, engine_post_lock_of(cq)))
		progress_poll(&h->progress, skipped);
}

/* Yields the core.  If frames wait for room, tells the progress thread that the
 * program polls again afterwards.  Returns how long the yield took, in ns. */
static uint64_t yield_for_room(struct progress_activity *a)
{
	bool is_full = shared_load(&a->is_full);
	uint64_t took;

	if (is_full)
		shared_store(&a->yields_for_room, true);
	took = yield_core();
	if (is_full)
		shared_store(&a->yields_for_room, false);
	return took;
}

/*
 * Yields the core, and then polls.  If another thread ran for a moment and then
 * packets arrived, the peer probably runs on this core.  So from here on each
 * poll yields first, or one in 16 while the backoff forbids some looks at the
 * socket (host_poll).  host_polled decides the same if the polled queue then
 * has a completion.  A yield to a thread that only computes takes longer.
 * @every: the number of empty polls between two yields.
 */
static void yield_poll(struct host *h, const struct cq *cq,
		       struct host_polls *polls, uint32_t every)
{
	uint32_t news = shared_load(&h->progress.policy.looks.news);
	uint64_t took = yield_for_room(&h->progress.activity);
	bool ran = took > SWITCH_MIN_NS && took < SWITCH_MAX_NS;

	poll_once(h, cq, &polls->skipped);
	every = ran && shared_load(&h->progress.policy.looks.news) != news
			? 1
			: bits_min_u32(2 * every, POLL_YIELD);
	shared_store(&polls->yield_every, every);
	shared_store(&polls->is_after, ran);
}

void host_poll(struct host *h, const struct cq *cq, struct host_polls *polls)
{
	uint32_t every = shared_own(&polls->yield_every);

	if (!every) /* no poll of the object has yielded yet */
		every = POLL_YIELD;
	/* Without a look at the socket a poll costs very little, so more polls
	 * come between two yields.  But if all traffic comes through the arena,
	 * and the peer runs on this core, each poll yields. */
	if (direct_select_is_quiet(&h->progress.direct_select))
		every *= every > 1 ? 4 : 1;
	else if (shared_load(&h->progress.policy.looks.is_paced))
		every *= 16;
	/* Only another process makes room, and it may run on this core. */
	if (shared_load(&h->progress.activity.is_full))
		every = 1;
	if ((shared_own(&polls->empty) + 1) % every == 0)
		yield_poll(h, cq, polls, every);
	else
		poll_once(h, cq, &polls->skipped);
}

void host_polled(struct host *h, struct host_polls *polls, bool empty)
{
	/* While all traffic comes through the arena, several threads may poll,
	 * each its own queue.  They do not set this word to false then, so that
	 * its cache line does not move between them. */
	if (shared_own(&h->progress.activity.polled_in_vain) != empty &&
	    (empty || !direct_select_is_quiet(&h->progress.direct_select)))
		shared_store(&h->progress.activity.polled_in_vain, empty);
	shared_store(&polls->empty, empty ? shared_own(&polls->empty) + 1 : 0);
	if (shared_own(&polls->is_after)) {
		shared_store(&polls->is_after, false);
		/* The completion may have come by chance.  Then yield_poll
		 * doubles yield_every again within a few polls. */
		if (!empty)
			shared_store(&polls->yield_every, 1);
	}
	wake_for_notify(h);
}

void host_armed(struct host *h)
{
	post_serve_own(&h->progress);
	progress_thread_armed(&h->progress);
	progress_serve(&h->progress);
}

void host_awaits(struct host *h)
{
	post_serve_own(&h->progress);
	progress_serve(&h->progress);
}

int host_sleep(struct host *h, const struct host_sleep *s)
{
	return leader_sleep(&h->progress, s);
}

void host_slept(void)
{
	leader_slept();
}

void host_wake(struct host *h)
{
	progress_wake(&h->progress);
}
