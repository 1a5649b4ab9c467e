/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This process's name for locks that others share, and what becomes of
 * theirs: the number of its thread and when that began.  The thread, not the
 * process: it ends too when the process executes another program.
 */
#ifndef HOST_OWNER_H
#define HOST_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/lock.h"

/* Is there a /proc to judge others by? */
bool owner_is_possible(void);
/* By the process's own thread, for as long as it runs: alock_open under its
 * name, which it returns. */
alock_owner owner_open(void);
/* When that thread is gone. */
void owner_close(void);

#endif
