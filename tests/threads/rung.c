/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rung: the main thread has taken a node from the stack, and has not yet called
 * mpsc_next.  A second thread stores `posted` and then pushes the node, which
 * mpsc_push leaves off the stack.  After mpsc_next the main thread must see the
 * store to `posted`.  ThreadSanitizer reports a race if the exchanges in
 * mpsc_push and mpsc_next do not order this store before the main thread's load
 * of `posted`.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "util/mpsc.h"

static struct mpsc stack;
static struct mpsc_node node;
static unsigned posted; /* not atomic: the stack orders store and load */
static atomic_bool has_rung;

static void *ring_again(void *arg)
{
	posted = 1;
	mpsc_push(&stack, &node);
	/* The store to has_rung is relaxed, so that it does not order the store
	 * to `posted` before the main thread's load: a seq_cst store to
	 * has_rung would hide a race in the stack from ThreadSanitizer. */
	atomic_store_explicit(&has_rung, true, memory_order_relaxed);
	return arg;
}

int main(void)
{
	struct mpsc_node *taken;
	pthread_t other;
	bool is_seen;

	mpsc_push(&stack, &node);
	taken = mpsc_take(&stack);
	if (pthread_create(&other, NULL, ring_again, NULL))
		return 1;
	while (!atomic_load_explicit(&has_rung, memory_order_relaxed))
		sched_yield();
	is_seen = taken == &node && !mpsc_next(taken) && posted == 1;
	pthread_join(other, NULL);
	if (is_seen && mpsc_seems_empty(&stack))
		return 0;
	fprintf(stderr, "rung: the taker of the node misses the word\n");
	return 1;
}
