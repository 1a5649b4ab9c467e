/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of events for the program: completion events of a channel, or the
 * asynchronous events of a context.  Each queue has one descriptor.
 *
 * The descriptor is an eventfd in semaphore mode.  It counts one token for each
 * event, so it is readable exactly when v_queue_get does not block, and
 * O_NONBLOCK has the effect that the program expects.  A source is one kind of
 * event of one object and counts its own events, so posting needs no memory and
 * cannot fail.
 *
 * A thread that sleeps in host_sleep instead of reading the descriptor claims
 * the next event.  That event gets no token: the thread looks for the event
 * itself, and is woken if another thread posts the event.  A queue has at most
 * one claim.
 *
 * Lock: v_queue.lock, a leaf, which the functions take.
 */
#ifndef VERBS_QUEUE_H
#define VERBS_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"
#include "util/lock.h"

struct v_queue {
	int fd; /* an eventfd, which the program sees */
	struct lock lock;
	struct list ready; /* sources with waiting > 0 */
	bool is_claimed;   /* a thread has a claim, and no event has come yet */
	bool is_claim_met; /* the claimed event is in `ready`, with no token */
	bool is_ended;	   /* v_queue_end was called */
	pthread_t claimer; /* the thread that has the claim */
	void (*wake)(void *arg); /* wakes the thread that has the claim */
	void *wake_arg;		 /* the argument of `wake` */
};

struct v_source {
	struct list link; /* in v_queue.ready, if waiting > 0 */
	uint32_t waiting; /* events posted and not taken */
	uint32_t taken;	  /* events taken since v_source_init */
	void *object;	  /* the object to which the events happen */
	int type;	  /* enum ibv_event_type; not used for completions */
};

/* Opens the descriptor.  Returns 0 or -errno. */
int v_queue_init(struct v_queue *q);
/* Closes the descriptor.  No thread may use the queue. */
void v_queue_fini(struct v_queue *q);
/* Makes a source without events, on no queue. */
void v_source_init(struct v_source *s, void *object, int type);
/* Adds one event of s, and makes the descriptor readable or wakes the thread
 * that claims the next event.  Never blocks. */
void v_queue_post(struct v_queue *q, struct v_source *s);
/* Waits for the next event, takes the event, and returns its source.  On
 * failure returns NULL and an errno of read(2): EAGAIN if the descriptor is
 * non-blocking and no event waits; EBADF: the program has closed the descriptor
 * and no event waits. */
struct v_source *v_queue_get(struct v_queue *q);
/* Returns whether an event waits. */
bool v_queue_has(struct v_queue *q);
/*
 * Claims the next event for the calling thread, which later calls
 * v_queue_unclaim.  When another thread posts the event, that thread calls
 * wake(arg) without v_queue.lock, but maybe under locks of its own.  Returns
 * false if an event waits, or another thread has a claim.
 */
bool v_queue_claim(struct v_queue *q, void (*wake)(void *), void *arg);
/* Returns whether the claimed event was posted, or the queue was ended. */
bool v_queue_has_claimed(struct v_queue *q);
/*
 * Ends the claim.  If the claimed event was posted and `takes` is true, takes
 * the event and stores its source in *s.  Otherwise stores NULL in *s, and the
 * claimed event, if it was posted, gets a token.  Returns false if v_queue_end
 * was called; then another thread may have freed q already.
 */
bool v_queue_unclaim(struct v_queue *q, bool takes, struct v_source **s);
/* Wakes a thread that has a claim, and waits until that thread has called
 * v_queue_unclaim.  The caller calls v_queue_fini afterwards. */
void v_queue_end(struct v_queue *q);
/* Returns whether the program has set O_NONBLOCK on the descriptor. */
bool v_queue_is_quick(struct v_queue *q);
/* Drops the waiting events of s, which is on no queue afterwards.  Returns how
 * many events of s were taken. */
uint32_t v_queue_forget(struct v_queue *q, struct v_source *s);

#endif
