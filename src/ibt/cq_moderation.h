/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The timers of moderated completion queues.  The event of such a queue is held
 * back until there are enough completions (hca/cq.h), or until the queue's
 * timer expires.  At most IBT_CQ_MODERATION timers run at a time.  If a further
 * queue needs a timer, its event is raised at once.  Owner: struct ibt.  Lock:
 * the progress lock.
 */
#ifndef IBT_CQ_MODERATION_H
#define IBT_CQ_MODERATION_H

#include "hca/hca.h"
#include "util/wheel.h"

#define IBT_CQ_MODERATION 64 /* how many timers a struct ibt has */

/* The timer of one moderated queue. */
struct cq_moderation {
	struct wheel_timer timer;
	aoff cq; /* the queue; 0: the timer is free */
};

struct ibt;

/* Starts or restarts cq's timer, which raises cq's event after cq->hold_ns;
 * raises the event at once if no timer is free. */
void cq_moderation_set(struct ibt *t, struct cq *cq);
/* A timer of kind IBT_TIMER_CQ_MODERATION has expired: raises the event of its
 * queue, and frees the timer. */
void cq_moderation_expire(struct ibt *t, struct wheel_timer *timer);
/* Frees cq's timer, if cq has one; to be called before cq is freed. */
void cq_moderation_forget(struct ibt *t, const struct cq *cq);

#endif
