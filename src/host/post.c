/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/post.h"

#include <sched.h>

#include "engine/shm_ack.h"
#include "host/inside.h"
#include "host/local_peer.h"
#include "memory/copy_nofault.h"

#define POSTED_TICKS 8	    /* the age at which activity.posted is renewed */
#define NOTE_NS	     500000 /* between calls of note_post, per post lock */
/* While the progress thread does not look for posts that wait, posts that could
 * wait wake the progress thread: one in this many under each post lock. */
#define ASK_EACH    256
#define POLICY_EACH 1024 /* calls of shares_time per call of ask_policy */

/* A bit for each post lock under which requests that this thread has posted may
 * wait.  By these bits a poll of any CQ by this thread finds and executes the
 * requests. */
static _Thread_local uint32_t own_waiting
	__attribute__((tls_model("initial-exec")));

/* Notes when and on which processor the program posts. */
static void note_post(struct progress *p, uint64_t now_ns)
{
	uint32_t tick = (uint32_t)(now_ns / PROGRESS_TICK_NS);

	if (tick - shared_own(&p->activity.posted) < POSTED_TICKS)
		return;
	shared_store(&p->activity.posted, tick);
	shared_store(&p->activity.posted_on, (uint32_t)sched_getcpu());
}

/* Does the part of a post that needs the progress lock: sends, and looks for
 * ACKs as often as the policy says. */
static void post_rest(struct progress *p) REQUIRES(&p->lock)
{
	note_post(p, p->now_ns);
	switch (poll_policy_post(&p->policy, p->now_ns)) {
	case POLL_POST_TURN:
		progress_turn(p);
		return;
	case POLL_POST_ACKS:
		shm_ack_look(engine_shm_ack(p->engine), p->now_ns);
		break;
	case POLL_POST_SEND:
		break;
	}
	progress_serve_doorbells(p);
	progress_settle(p);
}

static bool ask_policy(void)
{
	switch (sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) {
	case SCHED_OTHER:
	case SCHED_BATCH:
	case SCHED_IDLE:
		return true;
	default:
		return false;
	}
}

/*
 * Does the kernel let other threads run on this core once this thread has had
 * its share of time?  A thread of real-time policy keeps the core until it
 * sleeps, and may poll only memory.  So it leaves no request to the progress
 * thread or to the holder of a lock, which may wait for this core.
 */
static bool shares_time(void)
{
	static _Thread_local struct {
		uint32_t calls;
		bool answer;
	} last __attribute__((tls_model("initial-exec")));

	if (last.calls++ % POLICY_EACH == 0)
		last.answer = ask_policy();
	return last.answer;
}

/*
 * Is q ahead of its peer?  Then small requests are sent together: at the next
 * poll, when the peer answers, or when many have gathered.  Requests that no
 * packet acknowledges are gathered only while the progress thread looks for
 * them each POLL_POLICY_SERVE_NS.
 */
static bool is_ahead(const struct progress *p, const struct ibt_qp *q)
{
	return engine_qp_flying(q) >= PROGRESS_AHEAD ||
	       (shared_load(&p->policy.unanswered.is_served) &&
		engine_qp_is_unanswered(q));
}

/* Notes that a request that no packet acknowledges begins to wait now.  Makes
 * no note if the request's doorbell has been served meanwhile: by such a note,
 * a later request would seem to have waited since now. */
static void note_wait(struct progress *p)
{
	if (!poll_policy_is_waiting(&p->policy) &&
	    !mpsc_seems_empty(&p->doorbells))
		poll_policy_waits(&p->policy, monotonic_ns());
}

/*
 * May the posted work wait for more?  The caller has pushed the doorbell.  The
 * fence orders that store of the doorbell before the loads of is_ahead.  The
 * holder of the lock stores the words that is_ahead loads, and then loads the
 * doorbells.  Without the fence, each of the two threads could miss the other's
 * store, and the work would wait for an answer that never comes.
 */
static bool may_gather(struct progress *p, const struct ibt_qp *q,
		       uint32_t bytes)
{
	if (!poll_policy_may_gather(&p->policy, bytes) || !shares_time())
		return false;
	shared_fence();
	if (!is_ahead(p, q))
		return false;
	poll_policy_gathered(&p->policy, bytes);
	if (engine_qp_is_unanswered(q))
		note_wait(p);
	return true;
}

/* Executes the posted work of q at once, without a look at the socket, if q
 * goes direct and no frame is to be sent (engine_post_direct).  True: the
 * progress lock is released.  False: nothing was done. */
static bool is_done_at_once(struct progress *p,
			    struct ibt_qp *q) NO_LOCK_ANALYSIS
{
	if (!engine_post_direct(p->engine, q, p->now_ns))
		return false;
	note_post(p, p->now_ns);
	if (!engine_is_settled(p->engine))
		progress_settle(p);
	progress_release(p);
	return true;
}

/* Executes requests of q under its post lock.  False: the remaining requests
 * need the progress lock. */
static bool run_apart(struct progress *p, struct ibt_qp *q, uint64_t now)
{
	void *to_wake;
	bool done;

	copy_nofault_turn(now);
	done = engine_post_apart(p->engine, q, now, &to_wake);
	if (to_wake)
		local_peer_wake(to_wake);
	return done;
}

/* Executes the requests that wait under l.  False: some need the progress lock,
 * and their doorbell was pushed; the caller serves the doorbell after it has
 * released l. */
static bool run_waiting(struct progress *p, struct post_lock *l, uint64_t now)
	REQUIRES(&l->lock)
{
	struct ibt_qp *q = l->waiting;

	post_lock_set_waiting(l, NULL);
	post_gather_done(&l->gather);
	if (run_apart(p, q, now))
		return true;
	mpsc_push(&p->doorbells, engine_qp_doorbell(q));
	return false;
}

/* Does the progress thread look for requests that wait?  *wakes becomes true if
 * the thread should begin to look: the caller releases l and then wakes the
 * thread. */
static bool is_served(struct progress *p, struct post_lock *l, bool *wakes)
	REQUIRES(&l->lock)
{
	if (shared_load(&p->posts.is_served))
		return true;
	*wakes = l->refusals++ % ASK_EACH == 0;
	if (*wakes)
		shared_store(&p->posts.is_wanted, true);
	return false;
}

/* Has the program polled since the previous post?  Resets the mark. */
static bool take_poll(struct post_lock *l) REQUIRES(&l->lock)
{
	if (!shared_load(&l->signs.is_polled))
		return false;
	shared_store(&l->signs.is_polled, false);
	return true;
}

/* May the requests of q wait for more (post_gather.h)?  *wakes: as in
 * is_served. */
static bool may_wait(struct progress *p, struct post_lock *l, struct ibt_qp *q,
		     uint64_t now, bool *wakes) REQUIRES(&l->lock)
{
	return post_gather_posted(&l->gather, take_poll(l)) &&
	       engine_qp_gathers(p->engine, q) &&
	       (l->gather.count || shares_time()) && is_served(p, l, wakes) &&
	       post_gather_waits(&l->gather, now);
}

/* Lets the requests of q wait, or executes them.  False: the remaining requests
 * need the progress lock. */
static bool wait_or_run(struct progress *p, struct post_lock *l,
			struct ibt_qp *q, uint64_t now, bool *wakes)
	REQUIRES(&l->lock)
{
	if (may_wait(p, l, q, now, wakes)) {
		post_lock_set_waiting(l, q);
		own_waiting |= 1u << engine_qp_post_lock(q);
		return true;
	}
	if (l->waiting)
		post_lock_set_waiting(l, NULL);
	post_gather_done(&l->gather);
	return run_apart(p, q, now);
}

/*
 * Executes what was posted to q under q's post lock, or lets it wait.  False:
 * the remaining requests need the progress lock, or another thread keeps the
 * post lock.
 */
static bool is_done_apart(struct progress *p, struct ibt_qp *q) NO_LOCK_ANALYSIS
{
	struct post_lock *l = &p->posts.of[engine_qp_post_lock(q)];
	bool done, notes, wakes = false, are_others_done = true;
	uint64_t now;

	if (!post_lock_take_soon(l))
		return false;
	now = clock_now(&l->clock);
	if (l->waiting && l->waiting != q)
		are_others_done = run_waiting(p, l, now);
	done = wait_or_run(p, l, q, now, &wakes);
	notes = now - l->noted_ns > NOTE_NS;
	if (notes)
		l->noted_ns = now;
	lock_give(&l->lock);
	if (!are_others_done)
		progress_serve(p);
	/* wait_plan_make loads is_wanted and then stores is_resting, under all
	 * post locks.  This thread has stored is_wanted under one of them.  So
	 * wait_plan_make sees is_wanted set, or this thread sees is_resting
	 * set.  If neither did, the progress thread would sleep and not begin
	 * to look. */
	if (wakes && shared_load(&p->wake.is_resting))
		progress_wake(p);
	if (notes)
		note_post(p, now);
	return done;
}

void post_doorbell(struct progress *p, struct ibt_qp *q,
		   uint32_t bytes) NO_LOCK_ANALYSIS
{
	if (engine_qp_posts_apart(q) && is_done_apart(p, q))
		return;
	if (!is_ahead(p, q) && progress_try(p)) {
		if (is_done_at_once(p, q))
			return;
		progress_count_unanswered(p, q);
		engine_doorbell(p->engine, q, p->now_ns);
	} else {
		mpsc_push(&p->doorbells, engine_qp_doorbell(q));
		if (may_gather(p, q, bytes))
			return;
		if (!progress_try(p)) {
			if (shares_time())
				return; /* the holder serves the doorbell */
			progress_take(p);
		}
	}
	if (bytes > POLL_POLICY_SMALL && engine_qp_is_unanswered(q))
		poll_policy_large(&p->policy);
	post_rest(p);
	progress_release(p);
}

/* Executes the requests that wait under l, unless another thread keeps l. */
static void serve_waiting(struct progress *p,
			  struct post_lock *l) NO_LOCK_ANALYSIS
{
	bool is_done = true;

	if (!post_lock_take_soon(l))
		return;
	if (l->waiting)
		is_done = run_waiting(p, l, clock_now(&l->clock));
	lock_give(&l->lock);
	if (!is_done)
		progress_serve(p);
}

bool post_resume(struct progress *p, uint32_t number) NO_LOCK_ANALYSIS
{
	struct post_lock *l = &p->posts.of[number];
	struct ibt_qp *left;
	void *to_wake;
	uint64_t now;
	bool is_over;

	if (!engine_awaits_receive(p->engine, number) ||
	    shared_load(&l->signs.is_claimed) || !lock_try(&l->lock))
		return false;
	now = clock_now(&l->clock);
	copy_nofault_turn(now);
	is_over = engine_resume_apart(p->engine, number, now, &left, &to_wake);
	if (to_wake)
		local_peer_wake(to_wake);
	if (left)
		mpsc_push(&p->doorbells, engine_qp_doorbell(left));
	lock_give(&l->lock);
	if (left)
		progress_serve(p);
	return is_over;
}

void post_serve_own(struct progress *p)
{
	uint32_t left = own_waiting;

	own_waiting = 0;
	for (; left; left &= left - 1) {
		struct post_lock *l = &p->posts.of[__builtin_ctz(left)];

		if (shared_load(&l->signs.waits))
			serve_waiting(p, l);
	}
}

void post_polled(struct progress *p, uint32_t number)
{
	struct post_lock *l = &p->posts.of[number];

	if (!shared_load(&l->signs.is_polled))
		shared_store(&l->signs.is_polled, true);
	if (shared_load(&l->signs.waits))
		serve_waiting(p, l);
	if (own_waiting)
		post_serve_own(p);
}
