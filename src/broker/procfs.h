/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel shows of a process, or of a thread, in /proc/ID/stat and
 * status. */
#ifndef BROKER_PROCFS_H
#define BROKER_PROCFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_stat {
	char state;	/* as ps has it: 'T' stopped, 'Z' dead... */
	uint64_t start; /* when it began, in ticks since the machine did */
};

/* False: there is none, or it is not to be seen. */
bool procfs_look(pid_t id, struct procfs_stat *p);
/* Does it act as that user, in what it makes from here on (its fsuid)? */
bool procfs_acts_as(pid_t id, uid_t user);

#endif
