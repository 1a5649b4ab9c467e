/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptors 0, 1 and 2 of a program that was started without some of
 * them.  The kernel gives the lowest free number to each new file, so a file or
 * a socket of the program would become its standard output.  No state, no lock.
 */
#ifndef UTIL_STANDARD_FDS_H
#define UTIL_STANDARD_FDS_H

/*
 * Opens /dev/null at each number of a standard descriptor that is closed.  main
 * calls this before it opens anything.  As with a closed descriptor, reading
 * from standard input and writing to standard output or standard error then
 * fail with EBADF, and a program that this one executes has no such descriptor.
 * Returns 0, or -errno if /dev/null cannot be opened.
 */
int standard_fds_fill(void);

#endif
