/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames by which the two ends of a TCP connection begin MPA (RFC 5044
 * 7.1.1, with the enhanced connection data of RFC 6581 9):
 *
 *	 0	key: "MPA ID Req Frame" or "MPA ID Rep Frame"
 *	16	M C R S, 4 reserved bits
 *	17	revision
 *	18	PD_Length: bytes of private data, at most 512
 *	20	private data
 *
 * With S, in revision 2, the first four bytes of the private data are
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

#define MPA_HEAD	20     /* bytes before the private data */
#define MPA_PRIVATE_MAX 512    /* bytes, with the enhanced data */
#define MPA_ENHANCED	4      /* bytes of the enhanced data */
#define MPA_DEPTH_MAX	0x3fff /* IRD or ORD: the consumer sets the depth */
#define MPA_FRAME_MAX	(MPA_HEAD + MPA_PRIVATE_MAX)

enum mpa_kind { MPA_REQUEST, MPA_REPLY };

/*
 * The kinds of first FPDU by which an initiator of the peer-to-peer model shows
 * that it is ready to receive (RFC 6581 9.2): bits.  RFC 6581 1.1 calls the
 * first kind a SEND, and an FPDU without bytes too.
 */
enum mpa_rtr {
	MPA_RTR_SEND = 1,  /* B: a SEND without bytes */
	MPA_RTR_WRITE = 2, /* C: an RDMA Write without bytes */
	MPA_RTR_READ = 4,  /* D: an RDMA Read without bytes */
	MPA_RTR_ALL = 7,
};

/* The enhanced connection data (RFC 6581 9). */
struct mpa_enhanced {
	uint16_t ird, ord;    /* 0 to MPA_DEPTH_MAX */
	bool is_peer_to_peer; /* A: the initiator sends a ready-to-receive */
	/* the kinds that the initiator can send, or that the responder takes */
	uint8_t rtr;
};

struct mpa_frame {
	enum mpa_kind kind;
	uint8_t revision;
	bool wants_markers; /* M: its sender receives markers */
	bool wants_crc;	    /* C: its sender uses, or asks for, CRC32C */
	bool is_rejected;   /* R: the reply refuses the connection */
	bool is_enhanced;   /* S */
	struct mpa_enhanced enhanced; /* if is_enhanced */
	/* behind the enhanced data; borrowed */
	const uint8_t *private_data;
	uint16_t private_bytes;
};

/*
 * Reads a frame of that kind from the first n bytes of a stream.  Returns the
 * frame's length in bytes; 0: the frame is not complete, and its bytes so far
 * are right; -EPROTO: the bytes are no such frame; -EMSGSIZE: PD_Length is
 * above MPA_PRIVATE_MAX, or too short for the enhanced data.  A wrong byte is
 * found as soon as it is there.  Ignores reserved bits, and S in other
 * revisions than 2; f->private_data points into p.
 */
int mpa_parse(const uint8_t *p, size_t n, enum mpa_kind kind,
	      struct mpa_frame *f);
/* Writes a frame of at most MPA_FRAME_MAX bytes and returns its length;
 * -EMSGSIZE: there is more private data than fits. */
int mpa_write(uint8_t *p, const struct mpa_frame *f);

#endif
