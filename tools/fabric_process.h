/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process at the other end of a connection to the process of a fabric, by
 * the kernel's word: the process that has connected.  Its children may have
 * copies of the connection.  No state.
 */
#ifndef TOOLS_FABRIC_PROCESS_H
#define TOOLS_FABRIC_PROCESS_H

#include <stdbool.h>

/* Does the process run as this process's user?  Only such programs are trusted:
 * what one program sets, the user's other programs read. */
bool fabric_process_is_own(int connection);
/* Returns the pid of the process; 0: it is in a PID namespace that this process
 * does not see. */
int fabric_process_pid(int connection);
/*
 * Returns a descriptor that is readable once the process has ended, also if its
 * children keep the connection open.  The caller closes it.  -ESRCH: the
 * process has ended; -EOPNOTSUPP: this kernel, or a sandbox, has no such
 * descriptor for the process; or another -errno.
 */
int fabric_process_open(int connection);

#endif
