/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIDs and P_Keys for QPs by LID.  Such a QP (qp->is_by_lid) sends packets of
 * an InfiniBand link in place of UDP datagrams.  The subnet manager gives a
 * port its LID, its LMC and its P_Keys (engine_port).  Owner: struct ibt; lock:
 * the progress lock.
 */
#ifndef ENGINE_LID_H
#define ENGINE_LID_H

#include "engine/burst.h"

/* lid.c also has engine_port and engine_fail_device of engine.h. */

/* Sets in *lid the SLID and the P_Key for packets of q, a QP by LID.
 * @path_bits: the source path bits of the packets' address vector. */
void lid_add_port(const struct ibt *t, const struct ibt_qp *q,
		  uint8_t path_bits, struct burst_lid *lid);
/* Do the GIDs of a packet fit the path `ah` (IBTA Vol 1, 9.6.1.2.2)?  They do
 * if the packet has no GRH, or if the path has no GIDs. */
bool lid_has_gids(const struct hca_ah *ah, const struct iblink *link);
/* Did d, a packet by LID, come from the peer of q, a connected QP by LID, by
 * q's alternate path? */
bool lid_is_alternate(const struct ibt *t, const struct ibt_qp *q,
		      const struct engine_dgram *d);
/* Is `lid` a LID of a port of the device? */
bool lid_is_own(const struct ibt *t, uint32_t device, uint16_t lid);

#endif
