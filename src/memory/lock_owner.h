/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name of this process as the owner of shared locks (struct alock), and the
 * functions (struct alock_judge) that find out whether another owner is alive.
 * The name is the id and the start time of a thread other than the first of the
 * process: such a thread ends when the process executes another program, while
 * the process itself goes on.  Lock: none.
 */
#ifndef MEMORY_LOCK_OWNER_H
#define MEMORY_LOCK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/lock.h"

/* Returns whether /proc shows this thread.  Without /proc a process cannot tell
 * the owner of a shared lock from a later thread that has the same id. */
bool lock_owner_is_possible(void);
/* Makes the calling thread's name the name of this process (alock_open), and
 * returns it.  The caller is a thread other than the first, unless the process
 * never executes another program.  When the thread has ended, other processes
 * find this process dead, and may inherit its shared locks.  Returns 0, and
 * changes nothing, if the thread's file in /proc cannot be read, for example
 * because this process has no descriptor left. */
alock_owner lock_owner_open(void);
/* Removes the process's name and judge: the process is ALOCK_NAMELESS again
 * (alock_open).  Called after the thread that called lock_owner_open has ended.
 */
void lock_owner_close(void);

#endif
