/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire: takes a frame, and lets happen to it what the dice say. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "sim/world.h"

/* f as h sends it. */
void link_send(struct world *w, const struct host *h,
	       const struct engine_frame *f);

#endif
