/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive stack with many producers and one consumer: any thread pushes
 * without a lock, the consumer takes all nodes at once.  `queued` keeps a node
 * from being pushed twice.  Holds the doorbells that threads ring while another
 * thread makes progress.
 *
 *   push: node.next = top; top = node (CAS)        take: top -> NULL (swap)
 */
#ifndef UTIL_MPSC_H
#define UTIL_MPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mpsc_node {
	struct mpsc_node *next;
	atomic_bool queued;
};

struct mpsc {
	_Atomic(struct mpsc_node *) top;
};

/* Relaxed: another thread's push may not be seen yet.  For a caller that looks
 * again later, or that has just called lock_give, which is a full fence. */
static inline bool mpsc_seems_empty(const struct mpsc *s)
{
	return !atomic_load_explicit(&s->top, memory_order_relaxed);
}

/* Pushes n, unless n is on the stack already. */
static inline void mpsc_push(struct mpsc *s, struct mpsc_node *n)
{
	if (atomic_exchange_explicit(&n->queued, true, memory_order_seq_cst))
		return;
	n->next = atomic_load_explicit(&s->top, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&s->top, &n->next, n,
						      memory_order_seq_cst,
						      memory_order_relaxed))
		;
}

/* Takes all nodes; the caller walks them with mpsc_next. */
static inline struct mpsc_node *mpsc_take(struct mpsc *s)
{
	return atomic_exchange_explicit(&s->top, NULL, memory_order_seq_cst);
}

/*
 * Returns the node after n, and lets n be pushed again.
 *
 * Orders a producer's stores before its mpsc_push with the caller's loads after
 * this call.  A producer that finds n queued has exchanged `queued` before this
 * exchange, which reads that exchange's value, or that of a later one, and so
 * synchronizes with it: the caller sees what the producer posted.  Without that
 * order the caller could miss the posted request, and n would not be pushed
 * again.  A store here, even of seq_cst, reads nothing, so in C11 it would
 * order no later load of the caller.
 *
 * Also orders the load of n->next before a producer's store there, which comes
 * after the producer has read false.
 */
static inline struct mpsc_node *mpsc_next(struct mpsc_node *n)
{
	struct mpsc_node *next = n->next;

	atomic_exchange_explicit(&n->queued, false, memory_order_seq_cst);
	return next;
}

#endif
