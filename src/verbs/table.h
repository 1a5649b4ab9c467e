/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cookies: engine events name an object by a number instead of a pointer, so
 * that an event which outlives its object finds no object.  A cookie has an
 * index and a generation.  The generation changes when the index becomes free
 * for another object.  0 is no cookie.
 *
 * Lock: one for all functions.  v_table_visit calls the visitor under this
 * lock, and the visitor may take v_queue.lock.
 */
#ifndef VERBS_TABLE_H
#define VERBS_TABLE_H

#include <stdint.h>

/* Returns a new cookie for the object, or 0 if there is no memory. */
uint64_t v_table_add(void *object);
/* Removes the object: the cookie finds no object afterwards.  Cookie 0 is
 * ignored. */
void v_table_remove(uint64_t cookie);
/* Calls visit(object, type) if the cookie has an object.  Until visit returns,
 * v_table_remove of that object waits. */
void v_table_visit(uint64_t cookie, void (*visit)(void *object, int type),
		   int type);
/* Returns the cookie's index.  No other object in the table has this number. */
static inline uint32_t v_table_handle(uint64_t cookie)
{
	return (uint32_t)cookie;
}

#endif
