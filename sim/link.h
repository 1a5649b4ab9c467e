/* SPDX-License-Identifier: BSD-2-Clause */
/* The link between hosts: drops, duplicates, delays and damages frames. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include "sim/world.h"

/* Sends frame f from host h to the host with address f->to or, in a world with
 * a subnet, into the subnet.  The caller keeps f.  The world fails if no host
 * has the address. */
void link_send(struct world *w, const struct host *h,
	       const struct engine_frame *f);

#endif
