/* SPDX-License-Identifier: BSD-2-Clause */
/* Yields the core of a thread that polls.  Needs no lock. */
#ifndef HOST_YIELD_H
#define HOST_YIELD_H

#include <stdint.h>

/* Lets the other threads of the core run; returns for how many ns.  Keeps
 * errno.  The time is short if no other thread wanted to run. */
uint64_t yield_core(void);

#endif
