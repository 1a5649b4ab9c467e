/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cookies: what engine events carry instead of a pointer, so that an event
 * which outlives its object finds nobody.  0 is no cookie.
 *
 * Lock: one leaf of the table's own, held around what v_table_visit calls.
 */
#ifndef VERBS_TABLE_H
#define VERBS_TABLE_H

#include <stdint.h>

/* A cookie for object; 0 without memory. */
uint64_t v_table_add(void *object);
void v_table_remove(uint64_t cookie);
/* Call visit on the object if it is still there; it cannot go meanwhile. */
void v_table_visit(uint64_t cookie, void (*visit)(void *object, int type),
		   int type);
/* The part of a cookie that is unique among living objects. */
static inline uint32_t v_table_handle(uint64_t cookie)
{
	return (uint32_t)cookie;
}

#endif
