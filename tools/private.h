/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * private: a network namespace of one's own, as any user may make one, with
 * nothing in it but the loopback interface.  Single-threaded; no lock.
 */
#ifndef TOOLS_PRIVATE_H
#define TOOLS_PRIVATE_H

/*
 * Moves this process, and so what it starts, into a new network namespace whose
 * loopback is up; by a new user namespace, in which the user and the group keep
 * their numbers, where the kernel asks for that.  0, or -1 and a sentence.
 */
int private_enter(void);

#endif
