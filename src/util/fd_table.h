/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The size of the kernel's table of this process's descriptors.  No state, no
 * lock.
 *
 * When the number of a new descriptor reaches the size of the table, the kernel
 * doubles the table.  If threads share the table then, the thread that opens
 * this descriptor waits in the kernel for an RCU grace period, which takes 10
 * to 25 ms on an idle machine.  A program of iWARP with 1000 connections would
 * wait five times.
 */
#ifndef UTIL_FD_TABLE_H
#define UTIL_FD_TABLE_H

enum { FD_TABLE_ENTRIES = 4096 }; /* 32 KiB of kernel memory */

/* Lets the kernel enlarge the table to FD_TABLE_ENTRIES descriptors, or to the
 * soft limit RLIMIT_NOFILE if that is less.  Does nothing if this process has
 * several threads, or if no descriptor is free.  errno may change. */
void fd_table_enlarge(void);

#endif
