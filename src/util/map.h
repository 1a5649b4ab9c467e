/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table from numbers to pointers: open addressing, at most half full, so
 * that sparse numbers cost 32 to 64 bytes each and a look-up touches one or
 * two cache lines.  Grows when something is added, never when asked.
 *
 * Owns its slots, borrows what they point to.  No lock.
 */
#ifndef UTIL_MAP_H
#define UTIL_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint32_t key;
	void *value; /* NULL: the slot is free */
};

/* All zero is an empty map. */
struct map {
	struct map_slot *slots;
	uint32_t size; /* a power of two, or 0 */
	uint32_t count;
};

void map_fini(struct map *m);
/* @key must not be in it, @value not be NULL.  0 or -ENOMEM. */
int map_add(struct map *m, uint32_t key, void *value);
void map_remove(struct map *m, uint32_t key);
/* NULL when it is not in it. */
void *map_find(const struct map *m, uint32_t key);
/* The entry at *@at or after it, *@at moved behind it; NULL at the end. */
void *map_next(const struct map *m, uint32_t *at);

#endif
