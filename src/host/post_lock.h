/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Post locks: a thread that has the post lock of a queue pair executes plain
 * requests of the queue pair without the progress lock (engine_post_apart,
 * docs/decisions/026).
 *
 *	thread that posts          holder of the progress lock
 *	post_lock_take_soon        post_lock_take_all
 *	engine_post_apart          any call of the engine
 *	lock_give                  post_lock_give_all
 *
 * The holder of the progress lock takes all post locks before it calls the
 * engine for a queue pair, so it waits for at most one copy of each.  A thread
 * that has a post lock takes no other lock of struct progress.
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

/* The lock of the queue pairs with one number (engine_qp_post_lock), and the
 * members that the lock guards. */
struct post_lock {
	_Alignas(HCA_APART) struct lock lock;
	struct clock clock;
	uint64_t noted_ns; /* when progress_activity.posted was renewed */
	struct post_gather gather;
	/* the QP whose requests wait (post_gather.h); or NULL */
	struct ibt_qp *waiting;
	/* posts that no thread would have looked after */
	uint32_t refusals;
	/* Words that threads read and write without the lock, at each poll and
	 * once for each group of posts. */
	struct {
		_Alignas(HCA_APART) shared_flag waits; /* waiting is set */
		shared_flag is_polled; /* a poll came since the last post */
		shared_u32 groups;     /* gather.groups */
		/* The holder of the progress lock waits for the lock: threads
		 * that post let it go first. */
		shared_flag is_claimed;
	} signs;
	uint32_t groups_seen; /* signs.groups at post_lock_is_lively */
};

/* All post locks, by number.  Owner: struct progress; the members but `of` are
 * guarded by the progress lock. */
struct post_locks {
	struct post_lock of[ENGINE_POST_LOCKS];
	uint32_t mask;	/* a bit for each number that a QP has had */
	bool are_taken; /* by the holder of the progress lock */
	struct post_gather_thread thread;
	/* The thread that waits for work looks for posts that wait.  Written
	 * under all post locks, read under one. */
	shared_flag is_minded;
	shared_flag is_wanted; /* a thread that posts wants is_minded */
};

/* Prepares all post locks; none is in use. */
void post_lock_init_all(struct post_locks *p);
/* Destroys all post locks, which no thread has. */
void post_lock_fini_all(struct post_locks *p);
/* Takes the post locks that are in use, in the order of their numbers. */
void post_lock_take_all(struct post_locks *p);
/* Gives the locks that post_lock_take_all has taken, if it has. */
void post_lock_give_all(struct post_locks *p);
/* A queue pair with this number is about to be created: takes its lock too.
 * The caller has all post locks, and uses no queue pair meanwhile. */
void post_lock_add(struct post_locks *p, uint32_t number);
/*
 * Takes a post lock, waiting about as long as a turn of progress takes; false:
 * another thread keeps the lock for longer.  If the caller left a doorbell
 * instead of waiting, the holder would execute the requests of this thread for
 * as long as it posts.  A claim (is_claimed) is honoured for as long: the
 * thread that claims may have no core to run on.
 */
bool post_lock_take_soon(struct post_lock *l) TRY_ACQUIRE(true, &l->lock);
/* From here on the requests of q wait; q NULL: no requests wait. */
void post_lock_set_waiting(struct post_lock *l, struct ibt_qp *q)
	REQUIRES(&l->lock);
/*
 * For the holder of all post locks: returns a QP whose requests wait, and lets
 * them wait no more, so the caller executes them; NULL: there is none.
 */
struct ibt_qp *post_lock_take_over(struct post_locks *p, uint64_t now_ns);
/*
 * For the holder of all post locks, which is about to sleep: may posts wait
 * meanwhile?  Then it calls post_lock_is_lively each POST_GATHER_MIND_NS.
 */
bool post_lock_minds(struct post_locks *p, uint64_t now_ns);
/*
 * Have posts waited since the last call, and do none wait now that waited then?
 * False: the caller makes progress, which executes posts that wait.  Without a
 * lock; one thread at a time.
 */
bool post_lock_is_lively(struct post_locks *p);

#endif
