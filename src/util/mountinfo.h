/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The type of a mounted file system, and the user that serves it, from
 * /proc/self/mountinfo (proc(5)).  Unlike stat(2) and statfs(2), this needs no
 * answer from a process that serves the file system (FUSE).
 *
 * Allocates nothing and takes no lock.  Opens the file by a direct system call,
 * since the shim, which contains this file, defines open and openat itself.
 */
#ifndef UTIL_MOUNTINFO_H
#define UTIL_MOUNTINFO_H

#include <stdbool.h>

struct mountinfo {
	char type[32]; /* as "ext4" or "fuse.sshfs", cut to this size */
	/* The options name the user who has mounted the file system and serves
	 * it, as those of every FUSE file system do. */
	bool has_user;
	unsigned user; /* the user whom the options name; 0 without has_user */
};

/*
 * Finds the file system of a device (st_dev) and fills m.  Returns false if
 * mountinfo has no such device, as for a subvolume of btrfs, which has a number
 * of its own, or if there is no /proc.
 */
bool mountinfo_find(unsigned major, unsigned minor, struct mountinfo *m);
/* Finds the file system of a device in the text that is read from fd, and fills
 * m.  Returns false if the text has no such device.  fd stays the caller's and
 * is left where the reading ended. */
bool mountinfo_find_in(int fd, unsigned major, unsigned minor,
		       struct mountinfo *m);

#endif
