/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * private: makes a new network namespace, which has only the loopback
 * interface.  An ordinary user may do so if the kernel lets this user make a
 * user namespace.  Single-threaded; no lock.
 */
#ifndef TOOLS_PRIVATE_H
#define TOOLS_PRIVATE_H

/*
 * Moves this process, and so its later children, into a new network namespace,
 * and brings the namespace's loopback interface up.  If the kernel forbids
 * that, the process also moves into a new user namespace, and keeps its user
 * and group ID there; the programs that it later executes may still configure
 * the network namespace (CAP_NET_ADMIN, CAP_NET_RAW).  Returns 0, or -1 after a
 * sentence on stderr.
 */
int private_enter(void);

#endif
