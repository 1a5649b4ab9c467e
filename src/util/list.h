/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intrusive doubly linked list, whose head and nodes form a ring.  A node that
 * is on no list points to itself.  So it may be removed twice, and one
 * comparison tells whether a node is on a list.  Owner and lock are those of
 * the structure that contains the node.
 */
#ifndef UTIL_LIST_H
#define UTIL_LIST_H

#include <stdbool.h>

struct list {
	struct list *next, *prev;
};

/* Initialises an empty list, or a node that is on no list. */
static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

/* Returns whether the list has no node. */
static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}

/* Returns whether this node is on a list. */
static inline bool list_is_linked(const struct list *node)
{
	return node->next != node;
}

/* Appends a node, which must be on no list. */
static inline void list_push_tail(struct list *l, struct list *node)
{
	node->prev = l->prev;
	node->next = l;
	l->prev->next = node;
	l->prev = node;
}

/* Puts a node, which must be on no list, before the first node. */
static inline void list_push_head(struct list *l, struct list *node)
{
	list_push_tail(l->next, node);
}

/* Removes a node from its list; does nothing if it is on none. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Removes and returns the first node, or returns NULL if the list is empty.
 * Does not call list_remove: the stores through l show a static analyzer that
 * the node is no longer on the list. */
static inline struct list *list_pop_head(struct list *l)
{
	struct list *node = l->next;

	if (node == l)
		return 0;
	l->next = node->next;
	l->next->prev = l;
	list_init(node);
	return node;
}

/* Appends all nodes of `from` to l, which leaves `from` empty. */
static inline void list_take_all(struct list *l, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->next->prev = l->prev;
	l->prev->next = from->next;
	from->prev->next = l;
	l->prev = from->prev;
	list_init(from);
}

/* Iterates over all nodes of l; the body must not remove `it` from the list. */
#define list_for_each(it, l)                                                   \
	for (struct list *it = (l)->next; it != (l); it = it->next)
/* Iterates over all nodes of l; the body may remove `it` from the list. */
#define list_for_each_safe(it, l)                                              \
	for (struct list *it = (l)->next, *it##_next = it->next; it != (l);    \
	     it = it##_next, it##_next = it->next)

#endif
