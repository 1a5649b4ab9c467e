/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * private: a new network namespace, as any user may make one, which has only
 * the loopback interface.  Single-threaded; no lock.
 */
#ifndef TOOLS_PRIVATE_H
#define TOOLS_PRIVATE_H

/*
 * Moves this process, and so its children, into a new network namespace, and
 * brings its loopback interface up.  If the kernel requires it, the process
 * also moves into a new user namespace, which keeps the IDs of user and group.
 * Returns 0, or -1 after a sentence on stderr.
 */
int private_enter(void);

#endif
