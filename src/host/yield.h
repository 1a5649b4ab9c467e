/* SPDX-License-Identifier: BSD-2-Clause */
/* Yields the core of a thread that polls.  Needs no lock. */
#ifndef HOST_YIELD_H
#define HOST_YIELD_H

#include <stdint.h>

/* Lets the other threads of the core run: yields or, if the core is crowded
 * (poll_policy.h), sleeps for a moment.  Returns how many ns that took; a yield
 * is short if no other thread wanted to run.  Keeps errno. */
uint64_t yield_core(void);

#endif
