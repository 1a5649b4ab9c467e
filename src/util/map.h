/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table from 32-bit numbers to pointers, by open addressing.  The table
 * is at most half full, so that a look-up touches one or two cache lines.  The
 * table doubles when it would be fuller, and never shrinks.  Until the first
 * map_remove, a table with many entries takes 32 to 64 bytes for each entry.
 * Only map_add allocates.
 *
 * The map owns its slots; the caller owns what the values point to.  No lock:
 * the caller's lock protects the map.
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
	uint32_t size;	/* how many slots; a power of two, or 0 */
	uint32_t count; /* how many entries */
};

/* Frees the slots; the map is empty then. */
void map_fini(struct map *m);
/* Frees the values, which are from malloc(3), and does what map_fini does. */
void map_free(struct map *m);
/* Adds an entry.  @key must not be in the map, and @value must not be NULL.
 * Returns 0 or -ENOMEM. */
int map_add(struct map *m, uint32_t key, void *value);
/* Removes the entry of @key, if the map has one. */
void map_remove(struct map *m, uint32_t key);
/* Returns the value of @key, or NULL if the map has no such entry. */
void *map_find(const struct map *m, uint32_t key);
/* Iterates: returns the first value at slot *@at or later, and sets *@at to the
 * slot behind that value; NULL at the end.  The caller sets *@at to 0 first,
 * and calls no map_add or map_remove between two calls. */
void *map_next(const struct map *m, uint32_t *at);

#endif
