/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arena of a real process: two sparse memfds, one for each of its parts,
 * that another process of ours may map, sealed so that they can never shrink
 * under a mapping.  Where the kernel knows such a seal (Linux 5.1) nobody but
 * its owner can write the first.
 */
#ifndef MEMORY_ARENA_MAP_H
#define MEMORY_ARENA_MAP_H

#include "hca/arena.h"

struct arena_map {
	struct arena arena; /* formatted */
	int fd, shared_fd;  /* of its parts; owned */
};

/*
 * The bytes that an arena may have which this process maps.  An arena is mostly
 * holes, and valgrind, which looks for pointers in all that is mapped when a
 * program ends, and in each child of a fork, would fill them.
 */
size_t arena_map_limit(void);
/* 0 or -errno. */
int arena_map_new(struct arena_map *m);
void arena_map_free(struct arena_map *m);

/* What two parts have in common that lie one behind the other in memory. */
struct arena_parts {
	int fd, shared_fd;
	size_t bytes, shared_bytes;
	int prot; /* PROT_*, of the first */
};

/* NULL and errno: there is no place for them. */
void *arena_map_parts(const struct arena_parts *p);

#endif
