/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of this process as the owner of shared locks (struct alock), and the
 * judge of other owners.  The name is the id and the start time of a thread,
 * not of the process: unlike the process, the thread ends when the process
 * executes another program.  Lock: none.
 */
#ifndef MEMORY_LOCK_OWNER_H
#define MEMORY_LOCK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/lock.h"

/* Returns whether /proc shows threads, which the judge needs. */
bool lock_owner_is_possible(void);
/* Calls alock_open with the name of the calling thread, and returns the name.
 * The thread must run until lock_owner_close. */
alock_owner lock_owner_open(void);
/* Calls alock_open without a name and a judge; when that thread has ended. */
void lock_owner_close(void);

#endif
