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

/* lid.c also has engine_fail_device of engine.h. */

/* Sets in *lid the SLID and the P_Key for packets of q, a QP by LID.
 * @path_bits: the source path bits of the packets' address vector. */
void lid_add_port(const struct ibt *t, const struct ibt_qp *q,
		  uint8_t path_bits, struct burst_lid *lid);
/* Sets the addresses that packets for q, a connected QP by LID, must have: the
 * LIDs of both ends (IBTA Vol 1, 9.6.1.2.1). */
void lid_set_addresses(const struct ibt *t, struct ibt_qp *q);
/* Is `lid` a LID of a port of the device? */
bool lid_is_own(const struct ibt *t, uint32_t device, uint16_t lid);

#endif
