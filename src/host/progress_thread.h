/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread, one for each process: makes progress while the program
 * does not.  The thread waits in the kernel for the descriptors of waitset.h
 * and for the engine's next deadline.  If the thread wakes up while the program
 * polls, the thread leaves progress to the program, and checks after naps of
 * 50 us to 1 ms whether the program still polls.
 */
#ifndef HOST_PROGRESS_THREAD_H
#define HOST_PROGRESS_THREAD_H

#include "host/progress.h"

/* Starts the thread, unless it runs already.  Called under the ctx lock, or by
 * the host_get that makes the host.  Returns 0, or -errno: of fcntl(2),
 * eventfd(2) or pthread_create(3), or the result of local_peer_begin. */
int progress_thread_start(struct progress *p);
/* Stops the thread.  True: the thread has ended, or there was none.  False: the
 * program has closed the descriptor that would wake the thread.  The thread may
 * then never end, so the caller must not free memory that the thread uses. */
bool progress_thread_stop(struct progress *p);
/* Forgets the thread.  Called in the child of a fork, where the parent's thread
 * does not run, or after progress_thread_stop has returned false. */
void progress_thread_forget(void);
/* Called when the program has armed a CQ and is about to sleep. */
void progress_thread_armed(struct progress *p);

#endif
