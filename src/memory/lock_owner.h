/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's name for locks that others share, and what becomes of
 * theirs: the number of its thread and when that began.  The thread, not the
 * process: it ends too when the process executes another program.
 */
#ifndef MEMORY_LOCK_OWNER_H
#define MEMORY_LOCK_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/lock.h"

/* Is there a /proc to judge others by? */
bool lock_owner_is_possible(void);
/* By the process's own thread, for as long as it runs: alock_open under its
 * name, which it returns. */
alock_owner lock_owner_open(void);
/* When that thread is gone. */
void lock_owner_close(void);

#endif
