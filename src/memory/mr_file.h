/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file behind memory of this process, if other processes can map its pages:
 * a memfd, a file in /dev/shm, huge pages or any regular file, mapped shared
 * and without a gap.  Reads /proc.  No lock.
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
 * Finds the mapping that contains [va, va + bytes), and fills *m and *what,
 * with what->fd = -1.  Returns false if there is no such mapping or it is
 * private.
 */
bool mr_file_look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
		  struct share *what);
/* Finds the mapping that contains [va, va + bytes) as mr_file_look does, by the
 * text of /proc/self/maps alone, the only way before Linux 6.11. */
bool mr_file_look_by_text(uint64_t va, uint64_t bytes,
			  struct mr_file_mapping *m, struct share *what);
/* Opens the file of *m with O_PATH, by its name or, which may take longer, by
 * the program's descriptors; what->fd must be -1.  Returns true and sets
 * what->fd, which the caller closes, or false if the file is not found. */
bool mr_file_open(const struct mr_file_mapping *m, struct share *what);
/* Returns whether a region may be looked for: the lines that are read of /proc
 * are limited by a credit (mr_file.c). */
bool mr_file_has_credit(void);
/* Adds the credit of one registered region. */
void mr_file_earn(void);
/*
 * Returns whether /proc shows that process pid has mapped the range of *what,
 * shared, from that file and offset, and for writing if what->is_written.
 * *what comes from the peer: without this check a peer could have this process
 * write to a file that the peer itself may not write.
 */
bool mr_file_is(int pid, const struct share *what);

#endif
