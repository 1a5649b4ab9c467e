/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events on their way to the program, behind one descriptor.
 *
 * The descriptor is an eventfd that counts: one token for each event, so it
 * is readable exactly when v_queue_get will not block, and O_NONBLOCK on it
 * means what the program expects.  A source is what can happen to one object;
 * it carries its own count, so that posting needs no memory and never fails.
 *
 * A thread that sleeps elsewhere than in that read claims the next event, which
 * then has no token: the thread looks for the event itself, and is woken if
 * another thread posts it.
 *
 * Lock: v_queue.lock, a leaf, taken inside.
 */
#ifndef VERBS_QUEUE_H
#define VERBS_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/list.h"
#include "util/lock.h"

struct v_queue {
	int fd;
	struct lock lock;
	struct list ready; /* sources with waiting > 0 */
	bool is_claimed;   /* the next one is */
	bool is_owed;	   /* one of ready is the claimer's: */
	bool is_ended;	   /* the thread has to stop waiting */
	pthread_t claimer;
	void (*wake)(void *arg); /* wakes the thread */
	void *wake_arg;
};

struct v_source {
	struct list link;
	uint32_t waiting; /* events posted and not taken */
	uint32_t taken;	  /* events given to the program, ever */
	void *object;
	int type; /* enum ibv_event_type, for asynchronous ones */
};

/* 0 or -errno. */
int v_queue_init(struct v_queue *q);
void v_queue_fini(struct v_queue *q);
void v_source_init(struct v_source *s, void *object, int type);
void v_queue_post(struct v_queue *q, struct v_source *s);
/* Wait for the next event; NULL and errno (EAGAIN when non-blocking). */
struct v_source *v_queue_get(struct v_queue *q);
/* Would that take one at once? */
bool v_queue_has(struct v_queue *q);
/* The calling thread claims the next event.  False: it is there, or somebody
 * else's. */
bool v_queue_claim(struct v_queue *q, void (*wake)(void *), void *arg);
/* Is it there, or the queue ended? */
bool v_queue_has_claimed(struct v_queue *q);
/* Takes it, or gives the claim back: NULL.  -EBADF: v_queue_end. */
int v_queue_unclaim(struct v_queue *q, bool takes, struct v_source **s);
/* Before v_queue_fini: who has a claim still is woken, and gives it back. */
void v_queue_end(struct v_queue *q);
/* Does it never sleep, by the program's wish (O_NONBLOCK)? */
bool v_queue_is_quick(const struct v_queue *q);
/* Drop what waits from s; afterwards s is on no queue. Events taken so far. */
uint32_t v_queue_forget(struct v_queue *q, struct v_source *s);

#endif
