/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that progress.c and post.c share: the holder of the progress
 * lock. */
#ifndef HOST_INSIDE_H
#define HOST_INSIDE_H

#include "host/progress.h"

/* Returns the progress of h. */
struct progress *host_progress(struct host *h);
/* stream.c: host_qp_modify for a QP of an iWARP device. */
int stream_modify(struct progress *p, struct ibt_qp *q,
		  const struct hca_qp_attr *attr, uint32_t mask,
		  const char **why);
/* Takes the progress lock, and all post locks, if the progress lock is free. */
bool progress_try(struct progress *p) TRY_ACQUIRE(true, &p->lock);
/* Gives these locks, and serves the doorbells that were left meanwhile. */
void progress_release(struct progress *p) RELEASE(&p->lock);
/*
 * Does everything that is due.  The socket comes before the timers: what
 * arrived while the process slept must not look lost.  A process that died is
 * reaped after the socket was found empty: its last packets were sent before.
 */
void progress_turn(struct progress *p) REQUIRES(&p->lock);
/* Sends and reports until the engine has nothing more. */
void progress_settle(struct progress *p) REQUIRES(&p->lock);
/* Counts a post to q if nothing will acknowledge it. */
void progress_count_unanswered(struct progress *p, const struct ibt_qp *q)
	REQUIRES(&p->lock);

#endif
