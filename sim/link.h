/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between hosts: drops, duplicates, delays and damages frames. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "sim/world.h"

/* Sends f, which stays the caller's, from host h to the host of its address. */
void link_send(struct world *w, const struct host *h,
	       const struct engine_frame *f);

#endif
