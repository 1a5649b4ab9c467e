/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of RDMAP (RFC 5040 4; RFC 7306 for opcodes 8 to 11): one table
 * with the properties of all opcodes, and the bodies of RDMA Read Requests, of
 * Atomic Requests and Responses, and of Terminates.  The opcode is in the
 * header of DDP (hdr/ddp.h).  Pure.
 */
#ifndef HDR_RDMAP_H
#define HDR_RDMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "hdr/ddp.h"

#define RDMAP_VERSION 1 /* RV */

enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_IMMEDIATE = 8,
	RDMAP_IMMEDIATE_SE = 9,
	RDMAP_ATOMIC_REQUEST = 10,
	RDMAP_ATOMIC_RESPONSE = 11,
	RDMAP_OPCODES = 12,
};

/* Is the opcode one of the four kinds of SEND? */
static inline bool rdmap_is_send(uint8_t opcode)
{
	return opcode >= RDMAP_SEND && opcode <= RDMAP_SEND_SE_INV;
}

/* The properties of an opcode. */
struct rdmap_info {
	bool is_tagged;	      /* the segments of the message are tagged */
	enum ddp_queue queue; /* the queue of an untagged message */
	bool invalidates;     /* ddp_header.stag is an STag to invalidate */
	bool is_solicited;    /* the message raises a solicited event */
	bool is_extension;    /* allowed only if both sides know RFC 7306 */
	/* The length that the message must have, in bytes; 0: any length. */
	uint8_t payload_bytes;
};

/* The body of an RDMA Read Request (RFC 5040 4.4). */
#define RDMAP_READ_BYTES 28
struct rdmap_read {
	/* The key of the requester's buffer (sink), how many bytes to read, and
	 * the key of the responder's memory (source). */
	uint32_t sink_stag, bytes, source_stag;
	/* The tagged offsets in the sink and in the source. */
	uint64_t sink_offset, source_offset;
};

/* The body of an Atomic Request (RFC 7306 5.2.1). */
#define RDMAP_ATOMIC_BYTES 52
enum rdmap_atomic_opcode {
	RDMAP_FETCH_ADD = 0,
	RDMAP_COMPARE_SWAP = 2,
};
struct rdmap_atomic {
	/* 0 to 15: enum rdmap_atomic_opcode or another number. */
	uint8_t opcode;
	uint32_t identifier; /* a number that the response repeats */
	uint32_t stag;	     /* the key of the target */
	uint64_t offset;     /* the tagged offset of the target */
	/* The value to add or to swap in (data).  mask: for a swap, the bits to
	 * swap; for an add, the highest bits of the fields that are added
	 * separately. */
	uint64_t data, mask;
	/* The value to compare with, and the bits that are compared. */
	uint64_t compare, compare_mask;
};

/* The body of an Atomic Response (RFC 7306 5.2.2). */
#define RDMAP_ATOMIC_RESPONSE_BYTES 12
struct rdmap_atomic_response {
	uint32_t identifier; /* that of the request */
	uint64_t found;	     /* the value before the operation */
};

/* The body of a Terminate (RFC 5040 4.8); the terminated headers follow. */
#define RDMAP_TERMINATE_BYTES 4
struct rdmap_terminate {
	uint8_t layer; /* 0: RDMA, 1: DDP, 2: the layer below DDP */
	/* The error's type and code; their meaning depends on the layer. */
	uint8_t type, code;
	/* M, D, R: whether the length of the terminated segment, its DDP header
	 * and its RDMAP header follow. */
	bool has_length, has_ddp, has_rdmap;
};

/* Returns the row of an opcode; NULL: the opcode does not exist. */
const struct rdmap_info *rdmap_info(uint8_t opcode);
/* Reads RDMAP_READ_BYTES at p. */
void rdmap_read_parse(const uint8_t *p, struct rdmap_read *r);
/* Writes RDMAP_READ_BYTES at p. */
void rdmap_read_write(uint8_t *p, const struct rdmap_read *r);
/* Reads RDMAP_ATOMIC_BYTES at p. */
void rdmap_atomic_parse(const uint8_t *p, struct rdmap_atomic *a);
/* Writes RDMAP_ATOMIC_BYTES at p. */
void rdmap_atomic_write(uint8_t *p, const struct rdmap_atomic *a);
/* Reads RDMAP_ATOMIC_RESPONSE_BYTES at p. */
void rdmap_atomic_response_parse(const uint8_t *p,
				 struct rdmap_atomic_response *r);
/* Writes RDMAP_ATOMIC_RESPONSE_BYTES at p. */
void rdmap_atomic_response_write(uint8_t *p,
				 const struct rdmap_atomic_response *r);
/* Reads RDMAP_TERMINATE_BYTES at p. */
void rdmap_terminate_parse(const uint8_t *p, struct rdmap_terminate *t);
/* Writes RDMAP_TERMINATE_BYTES at p. */
void rdmap_terminate_write(uint8_t *p, const struct rdmap_terminate *t);

#endif
