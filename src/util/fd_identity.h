/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a descriptor's number still stands for what we opened.  A program may
 * close all descriptors but its own few, or put a file of its own in the place
 * of one, in the child of a fork or with a device open.  From then on the
 * number is the program's: to close, read or write it would hurt a file of the
 * program.
 *
 * What is known of a number is the file behind it (device and inode), and for
 * what has no inode of its own, as an eventfd has none, a signal number that is
 * set for it and never sent (F_SETSIG).
 *
 * Each number has one owner, who marks it when it is opened and closes it here;
 * no lock.  A child of fork knows what its parent knew.
 */
#ifndef UTIL_FD_IDENTITY_H
#define UTIL_FD_IDENTITY_H

#include <stdbool.h>

/* Remembers a descriptor that was just opened; returns it.  A negative one is
 * passed through.  One that cannot be remembered is taken to stay ours. */
int fd_identity_note(int fd);
/* The same for one that the program sees, and whose signals it may set; it is
 * told from other files only by its kind, if it has no inode of its own. */
int fd_identity_note_shown(int fd);
/* Is it still what it was?  False for a negative one. */
bool fd_identity_holds(int fd);
/* Closes it if it is, and forgets it. */
void fd_identity_close(int fd);

#endif
