/* SPDX-License-Identifier: BSD-2-Clause */
/* Cookies of objects: see table.h. */
#include "verbs/table.h"

#include <pthread.h>
#include <stdlib.h>

#include "util/count.h"
#include "verbs/object.h"

struct table_slot {
	void *object;
	uint32_t generation;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct table_slot *slots; /* under table_lock; slot 0 is unused */
static uint32_t slot_count;
static uint32_t lowest_free = 1; /* slots 1 to lowest_free - 1 have objects */
static struct count process;	 /* see v_process */

/* The lock is held across fork(2), so that the child has whole slots and a lock
 * that its thread can unlock.  Other handlers of pthread_atfork take other
 * locks.  No deadlock is possible: a thread that has table_lock takes none of
 * these other locks (a visitor takes only v_queue.lock), and a thread that has
 * one of the other locks does not take table_lock. */
static void about_to_fork(void)
{
	pthread_mutex_lock(&table_lock);
}

static void has_forked(void)
{
	pthread_mutex_unlock(&table_lock);
}

static void in_child(void)
{
	has_forked();
	count_up(&process);
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(about_to_fork, has_forked, in_child);
}

uint32_t v_process(void)
{
	return count_now(&process);
}

/* Returns the index of a free slot, or 0 if there is no memory.  Under
 * table_lock. */
static uint32_t free_slot(void)
{
	uint32_t more = slot_count ? slot_count * 2 : 64;
	struct table_slot *grown;

	while (lowest_free < slot_count && slots[lowest_free].object)
		lowest_free++;
	if (lowest_free < slot_count)
		return lowest_free;
	grown = realloc(slots, more * sizeof(*slots));
	if (!grown)
		return 0;
	for (uint32_t i = slot_count; i < more; i++)
		grown[i] = (struct table_slot){NULL, 1};
	slots = grown;
	slot_count = more;
	return lowest_free;
}

uint64_t v_table_add(void *object)
{
	uint64_t cookie = 0;
	uint32_t i;

	pthread_mutex_lock(&table_lock);
	i = free_slot();
	if (i) {
		slots[i].object = object;
		cookie = (uint64_t)slots[i].generation << 32 | i;
	}
	pthread_mutex_unlock(&table_lock);
	return cookie;
}

static struct table_slot *object_named(uint64_t cookie)
{
	uint32_t i = (uint32_t)cookie;

	if (!i || i >= slot_count || slots[i].generation != cookie >> 32)
		return NULL;
	return &slots[i];
}

void v_table_remove(uint64_t cookie)
{
	struct table_slot *s;

	pthread_mutex_lock(&table_lock);
	s = object_named(cookie);
	if (s) {
		s->object = NULL;
		s->generation++;
		if ((uint32_t)cookie < lowest_free)
			lowest_free = (uint32_t)cookie;
	}
	pthread_mutex_unlock(&table_lock);
}

void v_table_visit(uint64_t cookie, void (*visit)(void *object, int type),
		   int type)
{
	struct table_slot *s;

	pthread_mutex_lock(&table_lock);
	s = object_named(cookie);
	if (s && s->object)
		visit(s->object, type);
	pthread_mutex_unlock(&table_lock);
}
