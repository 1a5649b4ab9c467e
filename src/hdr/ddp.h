/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of a DDP segment (RFC 5041 4.2, 4.3), which also has the RDMAP
 * fields RV, opcode and STag to invalidate (RFC 5040 4.1, 4.2; RFC 7306 for
 * opcodes 8 to 11):
 *
 *	tagged, 14 bytes		untagged, 18 bytes
 *	 0	T L, 4 bits 0, DV	 0	T L, 4 bits 0, DV
 *	 1	RV, 2 bits 0, opcode	 1	RV, 2 bits 0, opcode
 *	 2	STag			 2	STag to invalidate, or 0
 *	 6	tagged offset		 6	queue number
 *					10	message sequence number
 *					14	message offset
 *
 * hdr/rdmap.h has the opcodes.  Pure.
 */
#ifndef HDR_DDP_H
#define HDR_DDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDP_TAGGED_BYTES   14
#define DDP_UNTAGGED_BYTES 18
#define DDP_HEAD_MAX	   DDP_UNTAGGED_BYTES
#define DDP_VERSION	   1 /* DV */

/* The untagged queues (RFC 5040 4.1, RFC 7306 4.1). */
enum ddp_queue {
	DDP_QUEUE_SEND = 0,    /* SENDs and Immediate Data */
	DDP_QUEUE_REQUEST = 1, /* RDMA Read Requests and atomics */
	DDP_QUEUE_TERMINATE = 2,
	DDP_QUEUE_ATOMIC_RESPONSE = 3,
	DDP_QUEUES = 4,
};

struct ddp_header {
	bool is_tagged, is_last; /* is_last: the last segment of its message */
	uint8_t ddp_version, rdmap_version; /* DV and RV */
	/* 0 to 15: enum rdmap_opcode, or a number that no opcode has. */
	uint8_t opcode;
	/* Tagged: the key of the buffer.  Untagged: the STag to invalidate. */
	uint32_t stag;
	uint64_t offset; /* tagged: the tagged offset in the buffer, in bytes */
	/* Untagged.  queue: enum ddp_queue, or a number that no queue has.
	 * sequence: the message sequence number. */
	uint32_t queue, sequence;
	/* Untagged: where in the message the segment begins, in bytes. */
	uint32_t message_offset;
};

/* Returns the length in bytes of the header whose first byte is `first`. */
size_t ddp_header_bytes(uint8_t first);
/* Reads a header from the n bytes at p and returns its length in bytes; 0: the
 * header is longer than n.  Any bytes make a header, so the caller judges
 * versions, queue and opcode. */
size_t ddp_parse(const uint8_t *p, size_t n, struct ddp_header *h);
/* Writes a header of at most DDP_HEAD_MAX bytes at p and returns its length. */
size_t ddp_write(uint8_t *p, const struct ddp_header *h);

#endif
