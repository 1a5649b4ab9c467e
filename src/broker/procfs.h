/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel tells in /proc of a process, or of a thread, by its id.  An
 * id may be of another process by the time that it is looked at: a caller that
 * has no pidfd compares procfs_stat's start.  No state, no lock.
 */
#ifndef BROKER_PROCFS_H
#define BROKER_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_stat {
	char state;	/* as ps has it: 'T' stopped, 'Z' dead... */
	uint64_t start; /* when it began, in ticks since the machine did */
};

/* False: there is no such process, or it cannot be seen. */
bool procfs_look(pid_t id, struct procfs_stat *p);
/* Does the process make files and sockets as that user (its fsuid)? */
bool procfs_acts_as(pid_t id, uid_t user);
/*
 * May this process of that user (SO_PEERCRED's) bind the port?  It may where
 * the kernel lets it bind a UDP port of the number: from
 * net.ipv4.ip_unprivileged_port_start on, or with CAP_NET_BIND_SERVICE in our
 * user namespace.  The capability is not believed in a process that has other
 * users' ids beside this one, or that got it by an exec (file capabilities):
 * such a process does not act for the program that has connected.  Of a process
 * that /proc does not show only root may.
 */
bool procfs_may_bind(pid_t id, uid_t user, uint16_t port);

#endif
