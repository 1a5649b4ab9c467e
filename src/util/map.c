/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/map.h"

#include <errno.h>
#include <stdlib.h>

#define LEAST 16 /* slots of the smallest table */

/* Returns the index of the slot where a look-up of @key begins. */
static uint32_t home_of(const struct map *m, uint32_t key)
{
	return (uint32_t)((uint64_t)(key * 0x9e3779b1u) * m->size >> 32);
}

static struct map_slot *slot_of(const struct map *m, uint32_t key)
{
	uint32_t i = home_of(m, key);

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & (m->size - 1);
	return &m->slots[i];
}

void map_fini(struct map *m)
{
	free(m->slots);
	*m = (struct map){0};
}

void map_free(struct map *m)
{
	uint32_t at = 0;
	void *value;

	while ((value = map_next(m, &at)))
		free(value);
	map_fini(m);
}

static int grow_map(struct map *m)
{
	struct map bigger = {.size = m->size ? 2 * m->size : LEAST,
			     .count = m->count};

	bigger.slots = calloc(bigger.size, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->size; i++)
		if (m->slots[i].value)
			*slot_of(&bigger, m->slots[i].key) = m->slots[i];
	free(m->slots);
	*m = bigger;
	return 0;
}

int map_add(struct map *m, uint32_t key, void *value)
{
	if (2 * (m->count + 1) > m->size && grow_map(m))
		return -ENOMEM;
	*slot_of(m, key) = (struct map_slot){key, value};
	m->count++;
	return 0;
}

/*
 * A look-up ends at the first empty slot, so it could miss an entry behind the
 * emptied slot.  map_remove moves such an entry into the emptied slot, and then
 * does the same for the slot that the move has emptied.
 */
void map_remove(struct map *m, uint32_t key)
{
	uint32_t mask = m->size - 1, hole, i;
	struct map_slot *s;

	if (!m->size)
		return;
	s = slot_of(m, key);
	if (!s->value)
		return;
	m->count--;
	hole = i = (uint32_t)(s - m->slots);
	for (;;) {
		i = (i + 1) & mask;
		if (!m->slots[i].value)
			break;
		/* A look-up of this entry begins behind the hole: the entry
		 * stays. */
		if (((i - home_of(m, m->slots[i].key)) & mask) <
		    ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole] = (struct map_slot){0};
}

void *map_find(const struct map *m, uint32_t key)
{
	return m->size ? slot_of(m, key)->value : NULL;
}

void *map_next(const struct map *m, uint32_t *at)
{
	while (*at < m->size)
		if (m->slots[(*at)++].value)
			return m->slots[*at - 1].value;
	return NULL;
}
