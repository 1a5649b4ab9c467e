/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The type and options of a mounted file system, from /proc/self/mountinfo
 * (proc(5)).  Unlike stat(2) and statfs(2), this needs no answer from a process
 * that serves the file system (FUSE).
 *
 * Allocates nothing and takes no lock.  Opens the file by a direct system call,
 * since the shim, which contains this file, defines open and openat itself.
 */
#ifndef UTIL_MOUNTINFO_H
#define UTIL_MOUNTINFO_H

#include <stdbool.h>

struct mountinfo {
	char type[32];	  /* as "ext4" or "fuse.sshfs", cut to this size */
	char options[64]; /* the file system's options, cut to this size */
};

/*
 * Finds the file system of a device (st_dev) and fills m.  Returns false if
 * mountinfo has no such device, as for a subvolume of btrfs, which has a number
 * of its own, or if there is no /proc.
 */
bool mountinfo_find(unsigned major, unsigned minor, struct mountinfo *m);

#endif
