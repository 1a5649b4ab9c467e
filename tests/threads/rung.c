/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rung: a thread stores a word, and then pushes a node that is on the stack
 * already.  The thread that takes the node from the stack must see the word.
 * ThreadSanitizer reports a race if the stack does not order the two accesses.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "util/mpsc.h"

static struct mpsc stack;
static struct mpsc_node node;
static unsigned posted; /* not atomic: the stack orders the two accesses */
static atomic_bool has_rung;

static void *ring_again(void *arg)
{
	posted = 1;
	mpsc_push(&stack, &node);
	/* Relaxed: orders nothing, and so hides nothing. */
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
