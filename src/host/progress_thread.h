/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our one thread: drives the lane when the program does not.  It sleeps in
 * the kernel on the socket and the engine's next deadline.  Woken while the
 * program polls it leaves the lane to it, and looks again after naps of 20 us
 * to 1 ms whether that is still so.
 */
#ifndef HOST_PROGRESS_THREAD_H
#define HOST_PROGRESS_THREAD_H

#include "host/progress.h"

/* Idempotent, call under the adapter's lock; 0 or -errno. */
int progress_thread_start(struct progress *l);
/* False: the thread is left alone, with what it uses: the program has closed
 * what would wake it. */
bool progress_thread_stop(struct progress *l);
/* In a forked child, which has no such thread. */
void progress_thread_forget(void);
/* The program armed a CQ and will sleep. */
void progress_thread_armed(struct progress *l);

#endif
