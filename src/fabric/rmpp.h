/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP (IBTA 13.6): sends a MAD of more than 256 bytes as numbered segments.
 * Each ACK of the receiver says up to which segment the sender may send.
 * Serves agents that registered with RMPP version 1, whose programs send and
 * receive whole MADs.
 */
#ifndef FABRIC_RMPP_H
#define FABRIC_RMPP_H

#include "fabric/end.h"

/* Is RMPP active in the MAD, and does its class have RMPP's header? */
bool rmpp_is_active(const uint8_t *mad);
/* Begins to send the MAD of `bytes` bytes at `mad`, which is copied.  Its
 * headers are taken from `first`, which has the agent's transaction ID. Returns
 * 0; -EINVAL: the MAD is shorter than its headers; -ENOBUFS: the end has too
 * many transfers; -ENOMEM. */
int rmpp_send(struct end *end, const struct umad *to,
	      const uint8_t first[MAD_BYTES], const uint8_t *mad, size_t bytes);
/* Takes a segment, an ACK, a STOP or an ABORT for an agent. */
void rmpp_take(struct end *end, uint32_t agent, const struct packet *p);
/* Frees the transfers of an agent; agent FABRIC_AGENTS: of all agents. */
void rmpp_free(struct end *end, uint32_t agent);
/* Sends the segments again whose ACK is late, and frees the transfers that have
 * waited too long. */
void rmpp_tick(struct end *end);
/* Returns when rmpp_tick has something to do, in ms; FABRIC_NEVER: never. */
uint64_t rmpp_deadline(const struct end *end);

#endif
