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
#ifndef HOST_LEADER_H
#define HOST_LEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "host/progress.h"

/* Before our thread begins, whose first act is to take the part. */
void leader_open(struct progress *l);
/* No program gets the part from here on, and who has it gives it back. */
void leader_close(struct progress *l);
/* When our thread has ended: nobody has it. */
void leader_closed(void);
/* In a forked child, where nobody has it. */
void leader_forget(void);

/* For our thread. */
void leader_take(void);
void leader_give(void);
/* One look, and what comes before the next: wait, look again soon, or stand
 * by for a program that minds. */
void leader_turn(struct progress *l);
/* Whoever is woken meanwhile is not to look at the socket. */
void leader_nap(struct progress *l, uint64_t ns);

/* host_sleep and host_slept. */
int leader_sleep(struct progress *l, const struct host_sleep *s);
void leader_slept(void);

#endif
