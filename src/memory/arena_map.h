/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The arena of a process: two sparse memfds, one for each part (hca/arena.h),
 * which other processes with adverb may map.  The memfds are sealed against a
 * change of size: if a process could shrink a memfd, accesses to mappings of
 * the memfd would fault.  From Linux 5.1 on, a seal also keeps other processes
 * from writing to the first part.  No lock: one thread at a time makes and
 * frees an arena.
 */
#ifndef MEMORY_ARENA_MAP_H
#define MEMORY_ARENA_MAP_H

#include "hca/arena.h"

/* The size in bytes of the smallest arena that arena_map_new makes: each of its
 * two files has half of this size. */
#define ARENA_MAP_LEAST ((size_t)16 << 20)

struct arena_map {
	struct arena arena; /* initialised by arena_init */
	int fd;		    /* the first part; owned */
	int shared_fd;	    /* the second part; owned */
};

/*
 * Returns the size in bytes of the largest arena that this process may map, its
 * own or a peer's; SIZE_MAX: any size.  There is a limit only under valgrind,
 * which reads all mapped memory when a program or the child of a fork ends, to
 * look for pointers.  An arena is mostly holes, and valgrind would fill the
 * holes with pages.
 */
size_t arena_map_limit(void);
/*
 * Creates, maps and seals an arena.  Tries sizes from 16 GiB down to
 * ARENA_MAP_LEAST, leaves out those above arena_map_limit, and takes the first
 * that the system allows.  Returns 0, or the -errno with which the smallest
 * size failed.  -EFBIG: the limit on the size of a file (ulimit -f) is too
 * small; -EAGAIN: the program has called mlockall(MCL_FUTURE), and the limit of
 * locked memory leaves too little.  The function has then printed a message.
 */
int arena_map_new(struct arena_map *m);
/* Unmaps the arena that arena_map_new has made, and closes its memfds. */
void arena_map_free(struct arena_map *m);

/* The two parts of an arena, which are mapped one behind the other. */
struct arena_parts {
	int fd, shared_fd;	    /* of the first and the second part */
	size_t bytes, shared_bytes; /* the sizes of the two parts */
	/* PROT_* of the first part's mapping; the second part is always mapped
	 * with PROT_READ | PROT_WRITE. */
	int prot;
};

/* Maps both parts.  Returns the address, which the caller unmaps by munmap, or
 * NULL and sets errno. */
void *arena_map_parts(const struct arena_parts *p);

#endif
