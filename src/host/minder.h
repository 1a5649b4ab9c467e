/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits for what the lane waits for: our thread; or a program that sleeps
 * for a completion, which is so woken once and not by our thread.  One at a
 * time has that part, and with it the lock.
 *
 *	our thread                          a program in ibv_get_cq_event
 *	has the part                        sleeps for its event alone
 *	tells of an event: was it for it?   wakes, works
 *	gives the part up, naps             takes it, sleeps for all
 *	it goes on: naps, or waits for it   wakes, gives it back, works
 *	a nap without it: takes it back
 *
 * With several programs asleep our thread keeps the part: one that works for
 * long would let the others wait for a nap.  One that sleeps in poll() on its
 * channel is not seen here, our thread minds for it.
 *
 * A signal ends such a sleep as it would end the read of a completion channel.
 * Where one handler of the program restarts system calls and another does not,
 * nobody could tell by which it was ended, so all sleep in that read.
 */
#ifndef HOST_MINDER_H
#define HOST_MINDER_H

#include <stdbool.h>
#include <stdint.h>

#include "host/lane.h"

/* Before our thread begins, whose first act is to take the part. */
void minder_open(struct lane *l);
/* No program gets the part from here on, and who has it gives it back. */
void minder_close(struct lane *l);
/* When our thread has ended: nobody has it. */
void minder_closed(void);
/* In a forked child, where nobody has it. */
void minder_forget(void);

/* For our thread. */
void minder_take(void);
void minder_give(void);
/* One look, and what comes before the next: wait, look again soon, or stand
 * by for a program that minds. */
void minder_turn(struct lane *l);
/* Whoever is woken meanwhile is not to look at the socket. */
void minder_nap(struct lane *l, uint64_t ns);

/* host_sleep and host_slept. */
int minder_sleep(struct lane *l, const struct host_sleep *s);
void minder_slept(void);

#endif
