/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive stack with many producers and one consumer.  Any thread pushes
 * without a lock; the consumer takes all nodes at once.  The flag `queued`
 * keeps a node from being pushed twice.  The stack contains the doorbells that
 * threads leave for the holder of the progress lock.
 *
 *   push: node.next = top; top = node (CAS)        take: top -> NULL (swap)
 */
#ifndef UTIL_MPSC_H
#define UTIL_MPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct mpsc_node {
	struct mpsc_node *next; /* the node that was pushed before this node */
	atomic_bool queued;	/* the node is on the stack, or was taken and
				 * waits for mpsc_next */
};

struct mpsc {
	_Atomic(struct mpsc_node *) top;
};

/* Returns whether the stack is empty.  Relaxed: another thread's push may not
 * be seen yet.  So this function is for a caller that looks again later, or
 * that has just called lock_give, whose full fence makes visible each push that
 * preceded a failed lock_try (util/lock.h). */
static inline bool mpsc_seems_empty(const struct mpsc *s)
{
	return !atomic_load_explicit(&s->top, memory_order_relaxed);
}

/*
 * Pushes n, unless n is on the stack already.  The exchange orders the caller's
 * earlier stores before the store to `queued`, and pairs with the exchange in
 * mpsc_next, whose comment says why.  The compare-and-swap orders the store to
 * n->next before the store to `top`, and pairs with the exchange in mpsc_take:
 * without this order the consumer could follow an old n->next.
 */
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

/* Takes all nodes.  Returns the node that was pushed last, or NULL if there is
 * none; the caller gets the others by mpsc_next. */
static inline struct mpsc_node *mpsc_take(struct mpsc *s)
{
	return atomic_exchange_explicit(&s->top, NULL, memory_order_seq_cst);
}

/*
 * Returns the node after n, and lets n be pushed again.
 *
 * The exchange orders a producer's stores before its mpsc_push with the
 * caller's loads after this call.  A producer that finds n queued has exchanged
 * `queued` before this exchange, which therefore reads the producer's value or
 * a later one, and so synchronizes with the producer: the caller sees what the
 * producer posted.  Without that order the caller could miss the posted
 * request, and n would not be pushed again.  A store instead of the exchange
 * would read nothing, so that in C11, even with seq_cst, it would order no
 * later load.
 *
 * The exchange also orders the load of n->next before a producer's store to
 * n->next, which follows the producer's read of false in `queued`.  Otherwise
 * the load could return the new value, and nodes would be lost.
 */
static inline struct mpsc_node *mpsc_next(struct mpsc_node *n)
{
	struct mpsc_node *next = n->next;

	atomic_exchange_explicit(&n->queued, false, memory_order_seq_cst);
	return next;
}

#endif
