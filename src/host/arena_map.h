/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arena of a real process: a sparse memfd that another process of ours
 * may map, sealed so that it can never shrink under a mapping.
 */
#ifndef HOST_ARENA_MAP_H
#define HOST_ARENA_MAP_H

#include "hca/arena.h"

struct arena_map {
	struct arena arena; /* formatted */
	int fd;		    /* owned */
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
/* n bytes of the kernel's CSPRNG. */
void arena_map_random(void *buf, size_t n);

#endif
