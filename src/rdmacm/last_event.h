/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts the event DISCONNECTED after the completions that the peer has caused
 * before it disconnected: by its messages, and by its acknowledgements of
 * requests.
 *
 * With a hardware adapter a program polls these completions long before the
 * kernel reports the disconnect request.  With adverb a thread of this process
 * makes the completions, and the thread may get a core only after the request
 * has come.  Then a program could poll once more before the completions are
 * made, and see the event before them.  Such a program destroys its queue pair,
 * which drops the completions, and takes its last sends for failed; libfabric
 * does so.
 *
 * So before the event is posted, all packets that have arrived are handled.  If
 * completions of the queue pair wait then, the event is withheld until the
 * program has polled the completions, but not for long, since some programs
 * poll only after they have got the event.
 *
 * A peer that disconnects and connects again expects that the program sees the
 * two in this order.  So a connection request is withheld, too, while an event
 * is withheld that came earlier to the same channel.
 *
 * Lock: r_lock, unless a function says otherwise.
 */
#ifndef RDMACM_LAST_EVENT_H
#define RDMACM_LAST_EVENT_H

#include "rdmacm/object.h"

/* How often r_last_event_serve looks for completions, at most once per
 * millisecond, until it posts the event in any case.  The number bounds the
 * rounds and not the time, so that a busy machine, on which the program polls
 * late, makes the wait longer. */
#define R_LAST_EVENT_ROUNDS 200

/* Withholds the event e of the peer's disconnect request, and owns e, until
 * r_last_event_serve or r_last_event_end posts e. */
void r_last_event_add(struct r_event *e);
/* Posts the event e of a connection request, and owns e: at once, or after the
 * withheld events of its channel. */
void r_last_event_add_request(struct r_event *e);
/* Returns whether events are withheld. */
bool r_last_event_waits(void);
/* Posts the withheld event of this id, if there is one, and the withheld
 * requests to this listener; id NULL: all withheld events. */
void r_last_event_end(const struct rdma_cm_id *id);
/* Returns whether an event is withheld that r_last_event_serve has not served.
 */
bool r_last_event_is_new(void);
/*
 * Without r_lock: handles the packets that have arrived, and posts the events
 * of queue pairs whose completions the program has polled.  The thread that has
 * called r_last_event_add calls this function with only_new before it handles
 * the broker's next message.  So an event that waits for no completion keeps
 * its place among the events of its channel.  While events are withheld, the
 * thread also calls this function without only_new, after each batch of
 * messages and when no message has come for a millisecond; of these calls, only
 * the first of each millisecond does anything.  Returns whether events remain.
 */
bool r_last_event_serve(bool only_new);
/* In a forked child: drops the events of the parent. */
void r_last_event_forget(void);

#endif
