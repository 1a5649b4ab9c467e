/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the file behind memory of this process, if other processes can map the
 * file's pages: a memfd, a file in /dev/shm, huge pages or any regular file,
 * which is mapped shared and without a gap.  Reads /proc.  No lock: any thread
 * may call these functions.
 */
#ifndef MEMORY_MR_FILE_H
#define MEMORY_MR_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

/* One line of /proc/PID/maps, or several lines that continue each other. */
struct mr_file_mapping {
	/* The addresses [start, end); the offset of `start` in the file, in
	 * bytes; the file's inode, or 0 for memory without a file. */
	uint64_t start, end, offset, ino;
	unsigned major, minor; /* the file's device */
	bool is_shared, is_read, is_written;
	char path[PATH_MAX]; /* the file's name, or what the kernel shows */
};

/*
 * Finds the mapping that contains [va, va + bytes), and fills *m and *what,
 * with what->fd = -1.  Returns false if there is no such mapping, or if it is
 * private or cannot be read.
 */
bool mr_file_look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
		  struct share *what);
/*
 * Does the work and has the results of mr_file_look, but only parses the text
 * of /proc/self/maps.  mr_file_look calls it before Linux 6.11, where the
 * kernel has no ioctl that finds a mapping; tests call it on any kernel.
 */
bool mr_file_look_by_text(uint64_t va, uint64_t bytes,
			  struct mr_file_mapping *m, struct share *what);
/*
 * Opens the file of *m with O_PATH: by the file's name or, which may take
 * longer, by a descriptor of the program that has the file open.  what->fd must
 * be -1.  Returns true and sets what->fd, which the caller closes, or false if
 * the file is not found.
 */
bool mr_file_open(const struct mr_file_mapping *m, struct share *what);
/* Returns whether the credit for reading lines of /proc is above 0 (mr_file.c).
 * If not, the caller does not look for the region's file. */
bool mr_file_has_credit(void);
/* Adds the credit that each registered region earns. */
void mr_file_earn(void);
/*
 * Returns whether /proc shows that process pid has mapped the whole range of
 * *what, shared, from the file and offset of *what, and for writing if
 * what->is_written.  *what comes from the peer: without this check a peer could
 * have this process write to a file that the peer itself may not write.
 */
bool mr_file_is(int pid, const struct share *what);

#endif
