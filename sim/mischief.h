/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of hosts and of programs, at random times; link.h has the frames'. */
#ifndef SIM_MISCHIEF_H
#define SIM_MISCHIEF_H

#include "sim/world.h"

/* Draws whether the world has such faults, and the time of the first. */
void mischief_init(struct world *w);
/* Causes one fault, and sets w->mischief_ns to the time of the next. */
void mischief_step(struct world *w);

#endif
