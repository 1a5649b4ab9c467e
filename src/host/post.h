/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts: work that a program has put into a send queue is executed at once if
 * it goes directly, is sent by the thread that posts if the progress lock is
 * free, is left as a doorbell for the lock's holder, or waits for more work
 * (post_gather.h, poll_policy.h).
 *
 * The thread that posts takes the post lock of the queue pair, and then, if it
 * has to, the progress lock; it waits for neither for long.
 */
#ifndef HOST_POST_H
#define HOST_POST_H

#include "host/progress.h"

/* Work of about @bytes, headers included, was posted to q. */
void post_doorbell(struct progress *p, struct ibt_qp *q, uint32_t bytes);
/*
 * The program polls a CQ with the post lock of this number: executes the
 * requests that wait under this lock, and the requests of this thread that
 * wait.
 */
void post_polled(struct progress *p, uint32_t number);
/* The program is about to wait: executes requests that this thread has posted
 * and that wait. */
void post_serve_own(struct progress *p);

#endif
