/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arena of a process: two sparse memfds, one for each part, which other
 * processes with adverb may map.  The memfds are sealed against a change of
 * size, so that an access to a mapping never faults.  From Linux 5.1 on a seal
 * also keeps other processes from writing to the first part.  No lock.
 */
#ifndef MEMORY_ARENA_MAP_H
#define MEMORY_ARENA_MAP_H

#include "hca/arena.h"

struct arena_map {
	struct arena arena; /* initialised by arena_init */
	int fd;		    /* the first part; owned */
	int shared_fd;	    /* the second part; owned */
};

/*
 * Returns the most bytes that an arena may have which this process maps.  An
 * arena is mostly holes.  valgrind reads all mapped memory when a program or
 * the child of a fork ends, to look for pointers, and would fill the holes with
 * pages.
 */
size_t arena_map_limit(void);
/*
 * Creates, maps and seals an arena, as large as the system allows.  Returns 0
 * or a negative errno.
 */
int arena_map_new(struct arena_map *m);
/* Unmaps the arena and closes its memfds. */
void arena_map_free(struct arena_map *m);

/* The two parts of an arena, to be mapped one behind the other. */
struct arena_parts {
	int fd, shared_fd;
	size_t bytes, shared_bytes;
	int prot; /* PROT_* for the first part; the second is read and written
		   */
};

/* Maps both parts.  Returns the address, or NULL and sets errno. */
void *arena_map_parts(const struct arena_parts *p);

#endif
