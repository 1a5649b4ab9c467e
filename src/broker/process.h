/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel shows of a process, or of a thread, in /proc/ID/stat and
 * status. */
#ifndef ADVERB_BROKER_PROCESS_H
#define ADVERB_BROKER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	char state;	/* as ps has it: 'T' stopped, 'Z' dead... */
	uint64_t start; /* when it began, in ticks since the machine did */
};

/* False: there is none, or it is not to be seen. */
bool process_look(pid_t id, struct process *p);
/* Does it act as that user, in what it makes from here on (its fsuid)? */
bool process_acts_as(pid_t id, uid_t user);

#endif
