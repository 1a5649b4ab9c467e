/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our one thread: drives the lane when the program does not.  It sleeps in
 * the kernel on the socket and the engine's next deadline.  While the program
 * polls fast it leaves the socket alone and looks once a millisecond whether
 * that is still so.
 */
#ifndef HOST_THREAD_H
#define HOST_THREAD_H

#include "host/lane.h"

/* Idempotent, call under the adapter's lock; 0 or -errno. */
int thread_start(struct lane *l);
void thread_stop(struct lane *l);
/* In a forked child, which has no such thread. */
void thread_forget(void);
/* The program polled; it armed a CQ and will sleep. */
void thread_polled(void);
void thread_armed(struct lane *l);

#endif
