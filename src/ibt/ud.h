/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable datagram (IBTA Vol 1, 9.8.3): each message is one packet to any
 * queue pair that shares a Q_Key, or to a multicast group.  A receive gets the
 * IP header first, in 40 bytes: IPv4's in the last 20 of them (A17.4.5.2).
 * Owner and lock: the QP's.
 */
#ifndef IBT_UD_H
#define IBT_UD_H

#include "ibt/ibt.h"

#define UD_GRH_BYTES 40

/* The IP header's part of what a datagram arrived with. */
struct ud_from {
	struct inaddr from, to;
	uint8_t tos;
	size_t bytes;  /* of the UDP datagram's payload */
	bool is_local; /* sent on this host, where a QPN is of one process */
};

/* That header as a receive gets it, and how a completion tells it. */
void ud_resp_grh(uint8_t grh[UD_GRH_BYTES], const struct ud_from *f);
uint16_t ud_resp_sl(const struct ud_from *f);
/* The Q_Key that w goes with. */
uint32_t ud_req_qkey(const struct ibt_qp *q, const struct wq_to *to);
/* Is the request at the cursor a datagram?  False: it fails. */
bool ud_req_start(struct ibt *t, struct ibt_qp *q, struct wqe *w);
/* The next packet at buf, and where it goes; 0 also when the next is not for
 * packets, or that is not decided yet. */
size_t ud_req_tx(struct ibt *t, struct ibt_qp *q, uint8_t *buf,
		 struct wq_to *to);
void ud_resp_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		const struct ud_from *from);

#endif
