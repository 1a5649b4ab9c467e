/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversions for the queue pairs that ask reach_find: reach_of_qp makes the
 * argument of reach_find from the attributes of a connected queue pair, and
 * reach_way makes the argument of engine_set_way from the answer.
 */
#ifndef FABRIC_REACH_QP_H
#define FABRIC_REACH_QP_H

#include <string.h>

#include "fabric/reach.h"
#include "hca/types.h"

/* Returns the packets that a connected queue pair with these attributes sends
 * by its primary path. */
static inline struct reach reach_of_qp(const struct hca_qp_attr *a)
{
	struct reach r = {.dest_qpn = a->dest_qpn,
			  .dlid = a->ah.dlid,
			  .pkey_index = a->pkey_index,
			  .sl = a->ah.sl,
			  .path_bits = a->ah.src_path_bits,
			  .mtu = (uint8_t)a->path_mtu,
			  .has_grh = a->ah.is_global};

	memcpy(r.sgid, a->ah.sgid, sizeof(r.sgid));
	memcpy(r.dgid, a->ah.dgid, sizeof(r.dgid));
	return r;
}

/* Returns the argument of engine_set_way for *peer, an answer of reach_find.
 * `changes` is the value of reach_changes at the time of that answer. */
static inline struct hca_way reach_way(const struct reach_peer *peer,
				       uint32_t changes)
{
	return (struct hca_way){.pkeys = peer->pkeys,
				.changes = changes,
				.slid = peer->slid,
				.port = peer->port,
				.path_bits = peer->path_bits,
				.path_mask = peer->path_mask};
}

#endif
