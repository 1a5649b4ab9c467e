/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP (IBTA 13.6): one MAD that is longer than 256 bytes as numbered segments,
 * with a window that the receiver opens by its ACKs.  For agents that
 * registered with RMPP version 1; the program sees the joined MAD.
 */
#ifndef FABRIC_RMPP_H
#define FABRIC_RMPP_H

#include "fabric/end.h"

/* Is RMPP active in the MAD, and does its class have RMPP's header? */
bool rmpp_is_active(const uint8_t *mad);
/* Begins to send a MAD of `bytes`; `first` has its headers, with the agent's
 * transaction ID.  Returns 0; -EINVAL: wrong length; -ENOBUFS: the end
 * has too many transfers open; -ENOMEM. */
int rmpp_send(struct end *end, const struct umad *to,
	      const uint8_t first[MAD_BYTES], const uint8_t *mad, size_t bytes);
/* Takes a segment, an ACK, a STOP or an ABORT for an agent. */
void rmpp_take(struct end *end, uint32_t agent, const struct packet *p);
/* Frees the transfers of an agent, or of all agents (FABRIC_AGENTS). */
void rmpp_free(struct end *end, uint32_t agent);
/* Sends again what was not acknowledged, and ends what is too old. */
void rmpp_tick(struct end *end);
/* When rmpp_tick has something to do, or FABRIC_NEVER. */
uint64_t rmpp_deadline(const struct end *end);

#endif
