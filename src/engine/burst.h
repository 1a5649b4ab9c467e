/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames under construction.  Packets of equal length to the same destination
 * are put one behind the other into a frame, which the kernel takes as a single
 * message (UDP_SEGMENT).  Only the last packet of a frame may be shorter.  A
 * longer packet begins a new frame.  (For example, the First of a WRITE is
 * longer than its Middles, because only the First has a RETH.)
 *
 * Each packet of an InfiniBand link is a frame of its own.
 *
 *	frame	| packet | packet | packet | shorter |
 *		 id 0     id 1     id 2     id 3	(IPv4, see rocev2.h)
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_BURST_H
#define ENGINE_BURST_H

#include "encap/iblink.h"
#include "encap/rocev2.h"
#include "engine/engine.h"
#include "ibt/ibt.h"

#define BURST_FRAMES 64 /* the most frames that wait to be sent */
/* The most packets of a frame.  Linux takes this many in one UDP_SEGMENT send.
 * An older Linux takes at most 64; there udp_send sends the packets of a larger
 * frame one by one. */
#define BURST_SEGMENTS 128
#define BURST_BYTES    65400 /* most bytes of a frame; fits IPv4 and IPv6 */
#define BURST_AREA     (128 << 10) /* bytes for all frames that wait */
/* The room at burst_space: for the packet that the caller writes there, and for
 * the ICRC and the VCRC that burst_put appends. */
#define BURST_PACKET (IBT_PACKET_BYTES + 8)

/* The path of a packet of an InfiniBand link. */
struct burst_lid {
	uint16_t dlid; /* 0: the packet goes by UDP */
	uint16_t slid; /* the source LID */
	uint16_t pkey; /* for the BTH */
	uint8_t sl;    /* the service level */
	/* The packet has a GRH, whose GIDs, traffic class and hop limit are
	 * from, to, tos and ttl of struct burst_path. */
	bool has_grh;
	uint32_t flow_label;   /* of the GRH */
	uint32_t device, port; /* by which the packet leaves */
};

/* The addresses of a packet, and the fields of its headers. */
struct burst_path {
	struct inaddr from, to;
	uint32_t dest_qpn;
	uint32_t link; /* the index of the interface of `from`; 0: any */
	uint8_t tos, ttl;
	/* The most packets in one frame, at most BURST_SEGMENTS. */
	uint32_t together;
	bool local; /* to a process of this host, see credit.h */
	struct burst_lid lid;
};

/* The frames that wait to be sent, and the memory of their packets. */
struct burst {
	uint32_t count;	   /* frames made since the area was empty */
	uint32_t first;	   /* the index of the first frame not yet sent */
	uint32_t segments; /* packets in the newest frame */
	bool is_open;	   /* the newest frame may take another packet */
	size_t used;	   /* bytes of the area that frames use */
	/* The last CRC of a payload that the caller has given to burst_put.
	 * sum.factor is used again for a payload of the same length. */
	struct rocev2_sum sum;
	/* The last two headers by UDP: rocev2_seal uses their CRCs again. */
	struct rocev2_memo memo;
	struct engine_frame frames[BURST_FRAMES];  /* the first `count` */
	uint8_t heads[BURST_FRAMES][LRH_HEAD_MAX]; /* of packets by LID */
	uint8_t area[BURST_AREA]; /* the bytes of all packets */
};

/* Returns where the caller has to write the next packet, with room for
 * BURST_PACKET bytes; NULL: there is no room. */
uint8_t *burst_space(struct burst *b);
/*
 * Puts the packet that the caller has written at burst_space into a frame, and
 * appends the packet's ICRC.  For a packet by LID, also writes lid.pkey into
 * its BTH, makes its LRH and, if lid.has_grh, its GRH, which are the head of
 * the frame, and appends its VCRC.  @len: the packet's bytes without ICRC.
 * @sum_crc: the CRC of its payload, if already known (ibt.sum_crc).
 * @sum_bytes: the length of that payload without pad; 0: the CRC is not known,
 * and @sum_crc is not used.
 */
void burst_put(struct burst *b, const struct burst_path *path, size_t len,
	       uint32_t sum_bytes, uint32_t sum_crc);
/* Returns the path of a connected QP's packets.  `together` is BURST_SEGMENTS
 * if the kernel may segment a frame on this path (hca_ah.bursts), else 1.  By
 * LID, the caller sets lid.slid and lid.pkey. */
struct burst_path burst_path_of(const struct ibt_qp *q);
/* Returns the path of one datagram of q, a UD QP.  `together` is BURST_SEGMENTS
 * if the kernel may segment a frame on this path (wq_to.bursts), else 1.  By
 * LID, the caller sets lid.slid and lid.pkey. */
struct burst_path burst_path_to(const struct ibt_qp *q, const struct wq_to *to);
/* Writes the ICRC of a packet anew.  Called for each packet of a frame whose
 * packets are sent one by one: such a packet has the IPv4 id 0 in place of the
 * id that it had in the frame, and the ICRC covers the id.  @len: the packet's
 * bytes with ICRC. */
void burst_seal_segment(const struct inaddr *from, const struct inaddr *to,
			uint8_t *packet, size_t len);
/* Makes the area empty again, if all frames have been sent. */
void burst_recycle(struct burst *b);

#endif
