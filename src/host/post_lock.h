/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Post locks: a thread that has the post lock of a queue pair may execute plain
 * requests of this queue pair without the progress lock (engine_post_apart,
 * engine_resume_apart, docs/decisions/026).
 *
 *	thread that posts or polls    holder of the progress lock
 *	post_lock_take_soon           post_lock_take_all
 *	engine_post_apart             any call of the engine
 *	lock_give                     post_lock_give_all
 *
 * The holder of the progress lock takes all post locks before it calls the
 * engine for a queue pair.  For each lock the holder waits no longer than the
 * thread that has the lock needs for two calls of engine_post_apart, or for one
 * call of engine_resume_apart.  A thread that has only a post lock takes no
 * other lock of struct progress.
 */
#ifndef HOST_POST_LOCK_H
#define HOST_POST_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "host/clock.h"
#include "host/post_gather.h"
#include "util/lock.h"
#include "util/shared.h"

#define POST_LOCK_VAIN_NS 100000 /* see post_lock_insist */

/* The lock of all queue pairs for which engine_qp_post_lock returns the same
 * number, and the members that the lock guards. */
struct post_lock {
	_Alignas(HCA_APART) struct lock lock;
	struct clock clock; /* tells the time to the holder of this lock */
	/* When the holder of this lock last renewed
	 * progress_activity.posted. */
	uint64_t noted_ns;
	struct post_gather gather;
	/* The QP whose requests wait (post_gather.h); NULL: none wait. */
	struct ibt_qp *waiting;
	/* How many posts could not wait, because the progress thread did not
	 * look for posts that wait. */
	uint32_t refusals;
	/* Words that threads read without the lock.  Only the holder of the
	 * lock writes `waits` and `groups`. */
	struct {
		_Alignas(HCA_APART) shared_flag waits; /* `waiting` is set */
		/* A poll came since the last post.  Set by a thread that polls,
		 * without the lock; reset by the holder of the lock. */
		shared_flag is_polled;
		shared_u32 groups; /* a copy of gather.groups */
		/* The holder of the progress lock waits for this lock, so
		 * threads that post leave the lock to that holder.  Only that
		 * holder writes this word. */
		shared_flag is_claimed;
	} signs;
	/* signs.groups at the last post_lock_is_lively, which alone uses this
	 * member, without the lock. */
	uint32_t groups_seen;
};

/* All post locks, by number.  Owner: struct progress.  The progress lock guards
 * all members but `of`, is_served and is_wanted. */
struct post_locks {
	struct post_lock of[ENGINE_POST_LOCKS];
	uint32_t mask;	/* a bit for each lock that is in use (post_lock_add) */
	bool are_taken; /* the holder of the progress lock has the post locks */
	/* When post_lock_insist was first called since the locks were last
	 * taken; 0: it was not called. */
	uint64_t vain_since_ns;
	struct post_gather_thread thread;
	/* The progress thread looks for posts that wait.  Written under all
	 * post locks.  Read by a thread that posts, under one post lock, and by
	 * the progress thread between its naps, without a lock. */
	shared_flag is_served;
	/* A thread that posts wants is_served to be set.  Set under one post
	 * lock; read and reset under all post locks. */
	shared_flag is_wanted;
};

/* Prepares all post locks; no lock is in use. */
void post_lock_init_all(struct post_locks *p);
/* Destroys all post locks.  No thread has one of them. */
void post_lock_fini_all(struct post_locks *p);
/* Takes all post locks that are in use, in the order of their numbers. */
void post_lock_take_all(struct post_locks *p);
/* Takes all post locks that are in use, if they are all free.  False: another
 * thread has one of the locks, and the caller has none of them. */
bool post_lock_try_all(struct post_locks *p);
/*
 * Called after post_lock_try_all was in vain, for work that may wait for
 * POST_LOCK_VAIN_NS.  Returns false, and the caller has none of the locks,
 * until all tries were in vain for that long; then waits for the locks, takes
 * them and returns true.  The wait delays the threads that post: while the
 * caller waits for one lock, it keeps the locks that it took before.
 */
bool post_lock_insist(struct post_locks *p, uint64_t now_ns);
/* Releases the locks that post_lock_take_all, post_lock_try_all or
 * post_lock_insist has taken; does nothing if none are taken. */
void post_lock_give_all(struct post_locks *p);
/* Called before a queue pair is created whose post lock has this number: makes
 * the lock one of those in use, and takes it.  The caller has all post locks
 * that are in use.  Unless the lock is in use already, the call releases them
 * and takes them again, so another thread may execute requests meanwhile. */
void post_lock_add(struct post_locks *p, uint32_t number);
/*
 * Takes a post lock, and waits for it about as long as a turn of progress
 * takes.  False: another thread keeps the lock for longer.
 *
 * A thread that posts waits for the lock and does not push a doorbell at once,
 * because the holder of the progress lock would then execute the requests of
 * that thread for as long as the thread posts.  While is_claimed is set, the
 * function leaves the lock to the claiming thread, but tries the lock once more
 * at the end of the wait, because the claiming thread may have no core to run
 * on.
 */
bool post_lock_take_soon(struct post_lock *l) TRY_ACQUIRE(true, &l->lock);
/* From here on the requests of q wait; q NULL: no requests wait. */
void post_lock_set_waiting(struct post_lock *l, struct ibt_qp *q)
	REQUIRES(&l->lock);
/*
 * For the holder of all post locks: returns a QP whose requests wait, and marks
 * them as not waiting; the caller executes them.  NULL: no requests wait.
 */
struct ibt_qp *post_lock_take_over(struct post_locks *p, uint64_t now_ns);
/*
 * For the holder of all post locks, which is about to sleep: may posts wait
 * during the sleep?  If they may, the holder calls post_lock_is_lively each
 * POST_GATHER_MIND_NS of its sleep.
 */
bool post_lock_serves(struct post_locks *p, uint64_t now_ns);
/*
 * Has a group of posts begun since the last call, and does no post wait that
 * waited at the last call?  False: the caller makes progress, which executes
 * the posts that wait.  Needs no lock; one thread at a time calls this.
 */
bool post_lock_is_lively(struct post_locks *p);

#endif
