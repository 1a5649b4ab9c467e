/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the kernel about the process that has connected to the process of a
 * fabric.  The children of the connected process may have copies of the
 * connection.  connection: the descriptor that accept(2) has returned.  No
 * state.
 */
#ifndef TOOLS_FABRIC_PROCESS_H
#define TOOLS_FABRIC_PROCESS_H

#include <stdbool.h>

/* Does the process run as this process's user?  False also if the kernel does
 * not tell.  Programs of other users are refused, since the user's programs
 * read what another program has told the fabric, for example the state that a
 * subnet manager has given a port. */
bool fabric_process_is_own(int connection);
/* Returns the pid of the process; 0: the process is in a PID namespace that
 * this process does not see, or the kernel does not tell. */
int fabric_process_pid(int connection);
/*
 * Returns a descriptor that is readable once the process has ended, also if its
 * children keep the connection open.  The caller closes it.  -ESRCH: the
 * process has ended; -EOPNOTSUPP: this kernel, or a sandbox, has no such
 * descriptor for the process; or another -errno.
 */
int fabric_process_open(int connection);

#endif
