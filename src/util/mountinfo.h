/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel says of a file system that is mounted: proc(5)'s mountinfo.
 * Unlike stat(2) and statfs(2) this asks no process that serves the file system
 * (FUSE), which might never answer.
 *
 * Allocates nothing, takes no lock, and calls the kernel without libc's names,
 * which are the shim's own in the shim.
 */
#ifndef UTIL_MOUNTINFO_H
#define UTIL_MOUNTINFO_H

#include <stdbool.h>

struct mountinfo {
	char type[32];	  /* "ext4", "fuse.sshfs" */
	char options[64]; /* of the file system, as far as there is room */
};

/*
 * Finds the file system of that device (st_dev).  False: this process sees no
 * mount of the file system, whose subvolumes may have other numbers (btrfs), or
 * there is no /proc.
 */
bool mountinfo_find(unsigned major, unsigned minor, struct mountinfo *m);

#endif
