/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The progress thread, one a process: makes progress while the program does
 * not.  It waits in the kernel for the socket and for the engine's next
 * deadline.  Woken while the program polls, it leaves progress to the program,
 * and looks again after naps of 50 us to 1 ms whether the program still polls.
 */
#ifndef HOST_PROGRESS_THREAD_H
#define HOST_PROGRESS_THREAD_H

#include "host/progress.h"

/* Starts the thread, once.  Under the ctx lock.  0 or -errno. */
int progress_thread_start(struct progress *l);
/* Stops the thread.  False: the program has closed the descriptor that would
 * wake it, so the thread stays, with the memory that it uses. */
bool progress_thread_stop(struct progress *l);
/* In a forked child, which has no such thread. */
void progress_thread_forget(void);
/* The program has armed a CQ and is about to sleep. */
void progress_thread_armed(struct progress *l);

#endif
