/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMPP (IBTA 13.6): a sender sends a MAD of more than 256 bytes as numbered
 * segments, and each ACK of the receiver names the last segment that has come
 * and the last one that the sender may send.  The fabric does this for agents
 * that registered with RMPP version 1: their programs send and receive whole
 * MADs.
 */
#ifndef FABRIC_RMPP_H
#define FABRIC_RMPP_H

#include "fabric/end.h"

/* Does the class of the MAD have RMPP's header, and is the flag ACTIVE set in
 * the header? */
bool rmpp_is_active(const uint8_t *mad);
/* Copies the MAD of `bytes` bytes at `mad`, and begins to send the copy to the
 * address `to`.  The copy's headers are those at `first`, which have the
 * agent's transaction ID.  Returns 0; -EINVAL: the MAD is shorter than its
 * headers; -ENOBUFS: the end is sending as many MADs as it may send at once;
 * -ENOMEM: no memory is left. */
int rmpp_send(struct end *end, const struct umad *to,
	      const uint8_t first[MAD_BYTES], const uint8_t *mad, size_t bytes);
/* Takes the packet p for an agent: a segment, an ACK, a STOP or an ABORT.
 * Ignores other packets.  The caller still owns the packet. */
void rmpp_take(struct end *end, uint32_t agent, const struct packet *p);
/* Frees the transfers of an agent; agent FABRIC_AGENTS: of all agents. */
void rmpp_free(struct end *end, uint32_t agent);
/* Sends again the segments whose ACK is late.  Ends a transfer by an ABORT if
 * for too long no ACK of a new segment has come to the sender, or no next
 * segment to the receiver.  Forgets old transfers whose MAD has come whole.
 */
void rmpp_tick(struct end *end);
/* Returns the time at which rmpp_tick has something to do, in ms; FABRIC_NEVER:
 * never. */
uint64_t rmpp_deadline(const struct end *end);

#endif
