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
#include "util/lock.h"

/* The lock of the queue pairs with one number (engine_qp_post_lock). */
struct post_lock {
	_Alignas(HCA_APART) struct lock lock;
	struct clock clock;
	uint64_t noted_ns; /* when progress_activity.posted was renewed */
};

/* All post locks, by number.  Owner: struct progress; the members but `of` are
 * guarded by the progress lock. */
struct post_locks {
	struct post_lock of[ENGINE_POST_LOCKS];
	uint32_t mask;	/* a bit for each number that a QP has had */
	bool are_taken; /* by the holder of the progress lock */
};

void post_lock_init_all(struct post_locks *p);
void post_lock_fini_all(struct post_locks *p);
/* Takes the post locks that are in use, in the order of their numbers. */
void post_lock_take_all(struct post_locks *p);
/* Gives them, if they are taken. */
void post_lock_give_all(struct post_locks *p);
/* A queue pair with this number is about to be created: takes its lock too.
 * The caller has all post locks, and uses no queue pair meanwhile. */
void post_lock_add(struct post_locks *p, uint32_t number);
/*
 * Takes a post lock; false: another thread keeps it for long.  A turn of
 * progress takes about as long as the call waits.  A doorbell that was left
 * instead would have the holder execute this thread's requests, for as long as
 * this thread posts.
 */
bool post_lock_take_soon(struct post_lock *l) TRY_ACQUIRE(true, &l->lock);

#endif
