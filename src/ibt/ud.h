/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable datagram (IBTA Vol 1, 9.8.3): each message is one packet to any
 * queue pair that shares a Q_Key, or to a multicast group.  The first 40 bytes
 * of a receive are the IP header: an IPv4 header stands in the last 20 of them
 * (IBTA A17.4.5.2).  Owner and lock: as struct ibt_qp.
 */
#ifndef IBT_UD_H
#define IBT_UD_H

#include "ibt/ibt.h"

#define UD_GRH_BYTES 40

/* The facts for the IP header of a datagram that has arrived. */
struct ud_from {
	struct inaddr from, to;
	uint8_t tos;
	size_t bytes;  /* UDP payload of the datagram */
	bool is_local; /* sent on this host, where each QPN is unique */
};

/* Writes the IP header as a receive gets it. */
void ud_resp_grh(uint8_t grh[UD_GRH_BYTES], const struct ud_from *f);
/* Returns the service level of the completion, which tells whether the header
 * is of IPv4 or IPv6. */
uint16_t ud_resp_sl(const struct ud_from *f);
/* Returns the Q_Key to send to @to: q's own if to->qkey has the high bit. */
uint32_t ud_req_qkey(const struct ibt_qp *q, const struct wq_to *to);
/* Judges w, the request at the cursor, and begins it.  False: w is no datagram
 * that q may send, and fails by unreliable_tx_stop. */
bool ud_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w);
/* Writes the next packet, BTH to padding, at buf (IBT_PACKET_BYTES), and its
 * destination to *to.  Returns its size; 0: there is nothing to send now, or
 * the next request goes direct, or its path is not decided yet. */
size_t ud_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		 struct wq_to *to);
/* Handles p, a datagram for q.  The caller holds the responder lock if p has
 * q's Q_Key; a datagram with another Q_Key is dropped without it. */
void ud_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const struct ud_from *from);

#endif
