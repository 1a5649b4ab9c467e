/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the file behind memory of this process, if other processes can map the
 * file's pages.  The file is a memfd, a file in /dev/shm or of huge pages, or
 * any other regular file, and the program has mapped it shared and without a
 * gap.  Reads /proc.  No lock: any thread may call these functions.
 */
#ifndef MEMORY_MR_FILE_H
#define MEMORY_MR_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

/* One line of /proc/PID/maps, or several lines that continue each other. */
struct mr_file_mapping {
	uint64_t start, end;   /* the addresses [start, end) */
	uint64_t offset;       /* the offset of `start` in the file, in bytes */
	uint64_t ino;	       /* the file's inode; 0: memory without a file */
	unsigned major, minor; /* the file's device */
	bool is_shared;	       /* MAP_SHARED */
	bool is_read;	       /* PROT_READ */
	bool is_written;       /* PROT_WRITE */
	char path[PATH_MAX];   /* the file's name, or a label such as [heap] */
};

/*
 * Finds the mapping that contains [va, va + bytes).  Fills *m and *what, which
 * may describe more than this range; what->fd is -1.  Returns false if there is
 * no such mapping, if the mapping is private, has no file or lacks PROT_READ,
 * or if `bytes` is 0 or /proc/self/maps cannot be opened.
 */
bool mr_file_look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
		  struct share *what);
/*
 * Does the work of mr_file_look by the text of /proc/self/maps, with the same
 * parameters and results.  mr_file_look calls this function where the kernel
 * has no ioctl that finds a mapping (PROCMAP_QUERY, Linux 6.11); tests call it
 * on any kernel.
 */
bool mr_file_look_by_text(uint64_t va, uint64_t bytes,
			  struct mr_file_mapping *m, struct share *what);
/*
 * Opens the file of *m with O_PATH: by the file's name, or else by a descriptor
 * that the program has of the file, which may take longer.  what->fd must be
 * -1.  Returns true and sets what->fd, which the caller closes.  Returns false
 * if neither the name nor a descriptor leads to the file.  While the allowance
 * of mr_file_may_look is used up, tries only a few likely descriptors.
 */
bool mr_file_open(const struct mr_file_mapping *m, struct share *what);
/*
 * A look for a region's file may read many lines of /proc.  The process has an
 * allowance of lines.  Each registered region adds to the allowance
 * (mr_file_earn), and each line that is read lowers the allowance by one.
 * Returns whether the allowance is above 0.  If not, the caller does not look
 * for the region's file.
 */
bool mr_file_may_look(void);
/* Adds the lines that a registered region earns to the allowance of
 * mr_file_may_look, unless the allowance is as large as at first. */
void mr_file_earn(void);
/*
 * Returns whether /proc shows that process pid has mapped the whole range of
 * *what, shared and readable, from the file and offset of *what, and for
 * writing if what->is_written.  Returns false also if /proc/PID/maps cannot be
 * opened.  *what comes from the peer: without this check a peer could make this
 * process write to a file that the peer itself may not write.
 */
bool mr_file_is(int pid, const struct share *what);

#endif
