/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of hosts and of programs at random times.  link.h has the faults of
 * frames. */
#ifndef SIM_MISCHIEF_H
#define SIM_MISCHIEF_H

#include "sim/world.h"

/* Draws whether the world has faults of hosts and programs, and the time of the
 * first fault (w->due.mischief_ns). */
void mischief_init(struct world *w);
/* Starts the processes of dead hosts that are due, tries to cause one fault
 * unless the world is quiet, and sets w->due.mischief_ns to the time of the
 * next call. */
void mischief_step(struct world *w);

#endif
