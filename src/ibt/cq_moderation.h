/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events of moderated completion queues, held back until there have been
 * enough completions or until a time is up.  Owner: struct ibt.  Lock: the
 * progress lock.  More queues than there is room for are told at once.
 */
#ifndef IBT_CQ_MODERATION_H
#define IBT_CQ_MODERATION_H

#include "hca/hca.h"
#include "util/wheel.h"

#define IBT_CQ_MODERATION 64

struct cq_moderation {
	struct wheel_timer timer;
	aoff cq; /* 0: free */
};

struct ibt;

/* Tell of cq when its time is up; without room at once. */
void cq_moderation_set(struct ibt *t, struct cq *cq);
void cq_moderation_expire(struct ibt *t, struct wheel_timer *timer);
/* cq is going. */
void cq_moderation_forget(struct ibt *t, const struct cq *cq);

#endif
