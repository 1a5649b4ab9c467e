/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Facts about a process or thread, by its id, from /proc.  An id may name
 * another process by the time that /proc is read: a caller that has no pidfd
 * compares procfs_stat's start.  No state, no lock.
 */
#ifndef BROKER_PROCFS_H
#define BROKER_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_stat {
	char state;	/* as ps has it: 'T' stopped, 'Z' dead... */
	uint64_t start; /* when the process began, in ticks since boot */
};

/* False: there is no such process, or it cannot be seen. */
bool procfs_look(pid_t id, struct procfs_stat *p);
/* Does the process make files and sockets as that user (its fsuid)? */
bool procfs_acts_as(pid_t id, uid_t user);
/*
 * May this process of that user (SO_PEERCRED's) bind the port?  The answer is
 * yes where the kernel lets the process bind a UDP port of the number: from
 * net.ipv4.ip_unprivileged_port_start on, or with CAP_NET_BIND_SERVICE in our
 * user namespace.  The capability is not believed in a process that has other
 * users' ids beside this one, or that got it by an exec (file capabilities):
 * such a process does not act for the program that has connected.  If /proc
 * does not show the process, the answer is yes for root alone.
 */
bool procfs_may_bind(pid_t id, uid_t user, uint16_t port);

#endif
