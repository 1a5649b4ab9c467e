/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the type of a mounted file system, and the user that serves it, from
 * /proc/self/mountinfo (proc(5)).  Unlike stat(2) and statfs(2), this needs no
 * answer from a process that serves the file system (FUSE).
 *
 * Allocates nothing and takes no lock.  Opens the file by a direct system call,
 * since libadverb-shim.so, which contains this code, itself defines open and
 * openat.
 */
#ifndef UTIL_MOUNTINFO_H
#define UTIL_MOUNTINFO_H

#include <stdbool.h>

struct mountinfo {
	char type[32]; /* such as "ext4" or "fuse.sshfs", cut to this size */
	/* The options name the user who has mounted the file system and serves
	 * it.  The options of every FUSE file system name this user. */
	bool has_user;
	unsigned user; /* the user id that the options name; 0 without one */
};

/*
 * Finds the file system of a device (st_dev) and fills m.  Returns false if
 * there is no /proc, or if mountinfo has no such device: a subvolume of btrfs,
 * for example, has a device number of its own, which is not there.
 */
bool mountinfo_find(unsigned major, unsigned minor, struct mountinfo *m);
/* Finds the file system of a device in the text that is read from fd, and fills
 * m.  Returns false if the text has no such device.  fd stays the caller's; its
 * offset is then where the reading ended. */
bool mountinfo_find_in(int fd, unsigned major, unsigned minor,
		       struct mountinfo *m);

#endif
