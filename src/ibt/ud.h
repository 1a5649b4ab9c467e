/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable datagram (IBTA Vol 1, 9.8.3): each message is one packet, to any
 * queue pair whose Q_Key it carries, or to a multicast group.  The first 40
 * bytes of a receive are the IPv6 header, or 20 bytes of 0 and the IPv4 header
 * (IBTA A17.4.5.2).  If the datagram came by LID, these bytes are the
 * datagram's GRH; without a GRH, they keep their contents (IBTA 11.4.2.1).
 * Owner: the engine.  Lock: the progress lock, unless a function's comment
 * names another.
 */
#ifndef IBT_UD_H
#define IBT_UD_H

#include "ibt/ibt.h"

#define UD_GRH_BYTES 40 /* the bytes of a receive before the payload */

/* The headers of a datagram that came by LID. */
struct ud_lid {
	bool is_used;	     /* false: the datagram came by UDP */
	bool has_grh;	     /* the datagram has a GRH */
	uint8_t sl;	     /* the service level of the LRH */
	uint8_t path_bits;   /* of the DLID */
	uint8_t port;	     /* the number of the port that received it */
	uint8_t hop_limit;   /* of the GRH */
	uint16_t slid;	     /* the source LID of the LRH */
	uint32_t flow_label; /* of the GRH */
};

/* The facts for the header of a datagram that has arrived. */
struct ud_from {
	/* Addresses as GIDs; for a datagram by LID, the GIDs of its GRH. */
	struct inaddr from, to;
	uint32_t device; /* the device that received the datagram */
	uint8_t tos;	 /* ToS or traffic class */
	size_t bytes;	 /* length from the BTH to the end of the ICRC */
	/* The datagram was sent on this host, where each QPN is unique. */
	bool is_local;
	struct ud_lid lid;
};

/* Writes to grh the first bytes of a receive: the header made from *f. */
void ud_resp_grh(uint8_t grh[UD_GRH_BYTES], const struct ud_from *f);
/* Returns the service level of the completion.  For a datagram by UDP the level
 * tells the program whether the header is of IPv4 or of IPv6. */
uint8_t ud_resp_sl(const struct ud_from *f);
/* Returns the Q_Key to send to @to: q's own if to->qkey has the high bit. */
uint32_t ud_req_qkey(const struct ibt_qp *q, const struct wq_to *to);
/* Judges w, the request at the cursor, and begins it.  False: w has a local
 * error, and unreliable_tx_stop was called. */
bool ud_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w);
/* Writes the next packet, BTH to padding, to buf (IBT_PACKET_BYTES), and its
 * destination to *to.  Returns the packet's length in bytes; 0: there is
 * nothing to send now, or the next request has a local error, goes direct, or
 * has no path yet. */
size_t ud_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		 struct wq_to *to);
/* Handles p, a datagram for q.  If p has q's Q_Key, the caller holds the
 * responder lock too; a datagram with another Q_Key is dropped without this
 * lock.
 */
void ud_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const struct ud_from *from);

#endif
