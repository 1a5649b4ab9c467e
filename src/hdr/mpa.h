/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames with which the two ends of a TCP connection begin MPA (RFC 5044
 * 7.1.1; enhanced connection data: RFC 6581 9):
 *
 *	 0	key: "MPA ID Req Frame" or "MPA ID Rep Frame"
 *	16	M C R S, 4 reserved bits
 *	17	revision
 *	18	PD_Length: bytes of private data, at most 512
 *	20	private data
 *
 * If bit S is set in revision 2, the first four bytes of the private data are
 * the enhanced connection data:
 *
 *	A B IRD(14)   C D ORD(14)
 *
 * Pure.
 */
#ifndef HDR_MPA_H
#define HDR_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_HEAD	20  /* bytes before the private data */
#define MPA_PRIVATE_MAX 512 /* bytes, enhanced data included */
#define MPA_ENHANCED	4   /* bytes of the enhanced data */
/* The greatest IRD or ORD.  This value means that the consumers agree on the
 * depth themselves (RFC 6581 9.1). */
#define MPA_DEPTH_MAX 0x3fff
#define MPA_FRAME_MAX (MPA_HEAD + MPA_PRIVATE_MAX)

enum mpa_kind { MPA_REQUEST, MPA_REPLY };

/*
 * Bits: the kinds of ready-to-receive.  In the peer-to-peer model a
 * ready-to-receive is the initiator's first FPDU (RFC 6581 9.2).  RFC 6581 1.1
 * is not clear about MPA_RTR_SEND: it calls this kind a SEND, and also an FPDU
 * without bytes.
 */
enum mpa_rtr {
	MPA_RTR_SEND = 1,  /* B: a SEND without bytes */
	MPA_RTR_WRITE = 2, /* C: an RDMA Write without bytes */
	MPA_RTR_READ = 4,  /* D: an RDMA Read without bytes */
	MPA_RTR_ALL = 7,
};

/* The enhanced connection data (RFC 6581 9). */
struct mpa_enhanced {
	/* How many RDMA Reads at a time the sender of the frame takes (ird) and
	 * sends (ord), 0 to MPA_DEPTH_MAX. */
	uint16_t ird, ord;
	bool is_peer_to_peer; /* A: the initiator sends a ready-to-receive */
	/* Bits of enum mpa_rtr.  Request: the kinds that the initiator can
	 * send.  Reply: the kinds that the responder takes. */
	uint8_t rtr;
};

/* A request or a reply. */
struct mpa_frame {
	enum mpa_kind kind;
	uint8_t revision;
	/* M: the sender of the frame asks the peer to send markers. */
	bool wants_markers;
	/* C: the sender of the frame asks for CRC32C in both directions.
	 * adverb sets C in each reply that accepts a request with C. */
	bool wants_crc;
	bool is_rejected; /* R: the reply rejects the connection */
	/* S: the frame has enhanced data.  An enhanced rejection over SCTP has
	 * none, although this member is true (hdr/session.h). */
	bool is_enhanced;
	struct mpa_enhanced enhanced; /* valid if is_enhanced */
	/* The private data after the enhanced data; borrowed. */
	const uint8_t *private_data;
	uint16_t private_bytes; /* without the enhanced data */
};

/*
 * Reads a frame of this kind from the first n bytes of a stream.  Returns the
 * frame's length in bytes; 0: the frame is not complete, and its bytes so far
 * are right; -EPROTO: the bytes are not a frame of this kind; -EMSGSIZE:
 * PD_Length is above MPA_PRIVATE_MAX, or too short for the enhanced data.  An
 * error is found as soon as the bytes that are wrong have come.  Ignores
 * reserved bits, and bit S in revisions other than 2.  f->private_data points
 * into p.
 */
int mpa_parse(const uint8_t *p, size_t n, enum mpa_kind kind,
	      struct mpa_frame *f);
/* Writes a frame of at most MPA_FRAME_MAX bytes at p and returns its length.
 * -EMSGSIZE: there is more private data than fits. */
int mpa_write(uint8_t *p, const struct mpa_frame *f);
/* Reads the enhanced data, MPA_ENHANCED bytes at p. */
void mpa_read_enhanced(const uint8_t *p, struct mpa_enhanced *e);
/* Writes the enhanced data, MPA_ENHANCED bytes at p. */
void mpa_write_enhanced(uint8_t *p, const struct mpa_enhanced *e);

#endif
