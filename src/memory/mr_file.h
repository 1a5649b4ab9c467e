/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies behind memory of this process: a file whose pages others can map
 * as well, and a descriptor of it.  Memory of a memfd, /dev/shm, huge pages or
 * any regular file, mapped shared, in one piece; of memory that is none of it
 * nothing is found.  No lock; reads /proc.
 */
#ifndef MEMORY_MR_FILE_H
#define MEMORY_MR_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

/* One line of /proc/self/maps. */
struct mr_file_mapping {
	uint64_t start, end, offset, ino;
	unsigned major, minor;
	bool is_shared, is_read, is_written;
	char path[PATH_MAX];
};

/*
 * Finds the mapping that [va, va + bytes) lies in, and fills *m and *what but
 * for its descriptor.  False: there is no such mapping, or it is private.
 */
bool mr_file_look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
		  struct share *what);
/* As mr_file_look, from the text of /proc/self/maps alone: the only way before
 * Linux 6.11. */
bool mr_file_look_by_text(uint64_t va, uint64_t bytes,
			  struct mr_file_mapping *m, struct share *what);
/* Opens the file of *m into what->fd, which the caller closes; false: the file
 * cannot be opened. */
bool mr_file_open(const struct mr_file_mapping *m, struct share *what);
/*
 * How much may be read of /proc for one more region (mr_file.c).  True: a
 * region may be looked for.  Each registered region earns a few lines.
 */
bool mr_file_has_credit(void);
void mr_file_earn(void);
/*
 * Does the kernel say so, too, of the memory of a process that does?  What a
 * peer has mapped for writing alone we may write in its place.
 */
bool mr_file_is(int pid, const struct share *what);

#endif
