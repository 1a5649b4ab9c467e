/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts about a process or thread, by its id, from /proc.  By the time that
 * /proc is read, the id may be that of another process: a caller that has no
 * pidfd compares `start` of struct procfs_stat.  No state, no lock.
 */
#ifndef BROKER_PROCFS_H
#define BROKER_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_stat {
	char state;	/* a letter as ps shows it: 'T' stopped, 'Z' dead... */
	uint64_t start; /* when the process began, in ticks since boot */
};

/* Reads the state and the start of a process into *p.  False: there is no such
 * process, it is not visible, or, if errno is EMFILE or ENFILE, no descriptor
 * is left. */
bool procfs_look(pid_t id, struct procfs_stat *p);
/* Is the process visible, and stopped by a signal or a debugger? */
bool procfs_is_stopped(pid_t id);
/* Is the process visible, and is its fsuid that user?  The kernel makes the
 * files and sockets of a process for its fsuid. */
bool procfs_acts_as(pid_t id, uid_t user);
/* Does binding this port need a right that not every process has
 * (net.ipv4.ip_unprivileged_port_start)?  The calling thread keeps the value of
 * the sysctl for a time in which it has no descriptor left. */
bool procfs_is_low_port(uint16_t port);
/*
 * May process id, of the user that SO_PEERCRED names, bind the port?  Yes, if
 * the kernel lets the process bind a UDP port of that number: from
 * net.ipv4.ip_unprivileged_port_start on, or with CAP_NET_BIND_SERVICE in this
 * user namespace.  The capability does not count in a process that also has ids
 * of other users, or that has got the capability by an exec (file
 * capabilities): such a process does not act for the program that has
 * connected.  If the capability is needed and /proc does not show the process,
 * the answer is yes only for root.
 *
 * If the kernel does not show the calling process the user namespace of process
 * id, the namespace counts as this one if both have the same map of users.  But
 * a map of a single user to its own number proves nothing, since that user can
 * make another namespace with the same map: the answer is no.
 */
bool procfs_may_bind(pid_t id, uid_t user, uint16_t port);

#endif
