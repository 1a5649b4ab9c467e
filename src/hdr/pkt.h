/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One transport packet: BTH, extension headers, payload (IBTA Vol 1, 9.2,
 * 9.3).
 *
 *	+-----+------------------------------+---------+-----+ - - - +
 *	| BTH | extension headers, by opcode | payload | pad | (ICRC)|
 *	+-----+------------------------------+---------+-----+ - - - +
 *
 * A struct pkt owns nothing: `payload` points into the bytes that were parsed.
 * Only the extension headers whose bits are in info->ext are set.
 */
#ifndef HDR_PKT_H
#define HDR_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/aeth.h"
#include "hdr/bth.h"
#include "hdr/ext.h"
#include "hdr/opcode.h"

/* The longest headers are those of an XRC atomic request. */
#define PKT_MAX_HEADER_BYTES                                                   \
	(BTH_BYTES + EXT_XRCETH_BYTES + EXT_ATOMICETH_BYTES)

/* A parsed packet, or a packet to write. */
struct pkt {
	struct bth bth;
	const struct opcode_info *info; /* the row of bth.opcode, static */
	struct deth deth;
	struct xrceth xrceth;
	struct feth feth;
	struct reth reth;
	struct atomiceth atomiceth;
	struct aeth aeth;
	struct atomicacketh atomicacketh;
	struct immdt immdt;
	struct ieth ieth;
	const uint8_t *payload; /* borrowed */
	size_t payload_len;	/* in bytes, without the padding */
};

/*
 * Reads the len bytes at p between the UDP header (or LRH or GRH) and the ICRC.
 * Returns true if the transport header version is 0, the opcode has a row,
 * `len` is a multiple of 4 and at least the length of the opcode's headers, the
 * padding is not longer than the bytes after the headers, and these bytes are
 * present only if the opcode allows payload.  Otherwise returns false, with
 * *pkt undefined.
 */
bool pkt_parse(const uint8_t *p, size_t len, struct pkt *pkt);

/*
 * Writes the BTH and the extension headers of pkt->bth.opcode, which must have
 * a row, at buf.  Computes the pad count from pkt->payload_len.  Returns the
 * length of the headers in bytes.  Uses neither pkt->info nor pkt->payload.
 */
size_t pkt_write_headers(uint8_t *buf, const struct pkt *pkt);

/* Returns how many bytes of padding follow `payload_len` bytes of payload (IBTA
 * 9.2.4). */
static inline uint8_t pkt_pad(size_t payload_len)
{
	return (uint8_t)(-payload_len & 3);
}

#endif
