/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes wrong besides single frames, at random times. */
#ifndef SIM_MISCHIEF_H
#define SIM_MISCHIEF_H

#include "sim/world.h"

void mischief_init(struct world *w);
/* Do one, and set w->mischief_ns to when the next is due. */
void mischief_step(struct world *w);

#endif
