/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells a process from its forked child.  The process ID alone does not: the
 * first process of a PID namespace has the process ID 1, and its child may be
 * the first process of another one.  Thread-safe.
 */
#ifndef UTIL_PROCESS_H
#define UTIL_PROCESS_H

#include <stdint.h>

/* Returns the number of the calling process, which is not 0.  A child has
 * another number than the process that made it, unless it was made without
 * libc's fork, by a bare clone(2), and both have the same process ID. */
uint64_t process_number(void);

#endif
