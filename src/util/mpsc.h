/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive many-producer stack: any thread pushes without a lock, one taker
 * takes all at once.  `queued` keeps a node from being pushed twice.  Used for
 * doorbells that arrive while somebody else makes progress.
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

/* For who looks again, or has just given the lock (lock_give is a fence). */
static inline bool mpsc_seems_empty(const struct mpsc *s)
{
	return !atomic_load_explicit(&s->top, memory_order_relaxed);
}

/* Push unless it is queued already. */
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

/* Take the whole stack; walk it with mpsc_next, which re-arms each node. */
static inline struct mpsc_node *mpsc_take(struct mpsc *s)
{
	return atomic_exchange_explicit(&s->top, NULL, memory_order_seq_cst);
}

static inline struct mpsc_node *mpsc_next(struct mpsc_node *n)
{
	struct mpsc_node *next = n->next;

	atomic_store_explicit(&n->queued, false, memory_order_seq_cst);
	return next;
}

#endif
