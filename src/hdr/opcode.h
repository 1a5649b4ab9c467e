/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BTH opcode (IBTA Vol 1, 9.2.1; A19 for FLUSH and ATOMIC WRITE; A17.9 for
 * the CNP of RoCEv2).
 *
 *	  7   6   5   4   3   2   1   0
 *	+-----------+-------------------+
 *	|  service  |     operation     |
 *	+-----------+-------------------+
 *
 * An operation has the same five bits in every service that has this operation.
 * One constant table has the properties of all opcodes: the headers that
 * follow, the position of the packet in its message, and the side that sends
 * it.  Reserved opcodes of RC have a row, as requests that the responder
 * refuses (IBTA 9.9.3).  Other reserved opcodes, and all opcodes of RD and of
 * the services 6 and 7, have no row.
 */
#ifndef HDR_OPCODE_H
#define HDR_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

enum opcode_service {
	OPCODE_SERVICE_RC = 0,
	OPCODE_SERVICE_UC = 1,
	OPCODE_SERVICE_RD = 2,
	OPCODE_SERVICE_UD = 3,
	OPCODE_SERVICE_CNP = 4,
	OPCODE_SERVICE_XRC = 5,
};

/* clang-format off */
enum opcode {
	OPCODE_RC_SEND_FIRST = 0x00,
	OPCODE_RC_SEND_MIDDLE = 0x01,
	OPCODE_RC_SEND_LAST = 0x02,
	OPCODE_RC_SEND_LAST_IMM = 0x03,
	OPCODE_RC_SEND_ONLY = 0x04,
	OPCODE_RC_SEND_ONLY_IMM = 0x05,
	OPCODE_RC_WRITE_FIRST = 0x06,
	OPCODE_RC_WRITE_MIDDLE = 0x07,
	OPCODE_RC_WRITE_LAST = 0x08,
	OPCODE_RC_WRITE_LAST_IMM = 0x09,
	OPCODE_RC_WRITE_ONLY = 0x0a,
	OPCODE_RC_WRITE_ONLY_IMM = 0x0b,
	OPCODE_RC_READ_REQUEST = 0x0c,
	OPCODE_RC_READ_RESPONSE_FIRST = 0x0d,
	OPCODE_RC_READ_RESPONSE_MIDDLE = 0x0e,
	OPCODE_RC_READ_RESPONSE_LAST = 0x0f,
	OPCODE_RC_READ_RESPONSE_ONLY = 0x10,
	OPCODE_RC_ACKNOWLEDGE = 0x11,
	OPCODE_RC_ATOMIC_ACKNOWLEDGE = 0x12,
	OPCODE_RC_COMPARE_SWAP = 0x13,
	OPCODE_RC_FETCH_ADD = 0x14,
	OPCODE_RC_SEND_LAST_INV = 0x16,
	OPCODE_RC_SEND_ONLY_INV = 0x17,
	OPCODE_RC_FLUSH = 0x1c,
	OPCODE_RC_ATOMIC_WRITE = 0x1d,

	OPCODE_UC_SEND_FIRST = 0x20,
	OPCODE_UC_SEND_MIDDLE = 0x21,
	OPCODE_UC_SEND_LAST = 0x22,
	OPCODE_UC_SEND_LAST_IMM = 0x23,
	OPCODE_UC_SEND_ONLY = 0x24,
	OPCODE_UC_SEND_ONLY_IMM = 0x25,
	OPCODE_UC_WRITE_FIRST = 0x26,
	OPCODE_UC_WRITE_MIDDLE = 0x27,
	OPCODE_UC_WRITE_LAST = 0x28,
	OPCODE_UC_WRITE_LAST_IMM = 0x29,
	OPCODE_UC_WRITE_ONLY = 0x2a,
	OPCODE_UC_WRITE_ONLY_IMM = 0x2b,

	OPCODE_UD_SEND_ONLY = 0x64,
	OPCODE_UD_SEND_ONLY_IMM = 0x65,

	OPCODE_XRC_SEND_FIRST = 0xa0,
	OPCODE_XRC_SEND_MIDDLE = 0xa1,
	OPCODE_XRC_SEND_LAST = 0xa2,
	OPCODE_XRC_SEND_LAST_IMM = 0xa3,
	OPCODE_XRC_SEND_ONLY = 0xa4,
	OPCODE_XRC_SEND_ONLY_IMM = 0xa5,
	OPCODE_XRC_WRITE_FIRST = 0xa6,
	OPCODE_XRC_WRITE_MIDDLE = 0xa7,
	OPCODE_XRC_WRITE_LAST = 0xa8,
	OPCODE_XRC_WRITE_LAST_IMM = 0xa9,
	OPCODE_XRC_WRITE_ONLY = 0xaa,
	OPCODE_XRC_WRITE_ONLY_IMM = 0xab,
	OPCODE_XRC_READ_REQUEST = 0xac,
	OPCODE_XRC_READ_RESPONSE_FIRST = 0xad,
	OPCODE_XRC_READ_RESPONSE_MIDDLE = 0xae,
	OPCODE_XRC_READ_RESPONSE_LAST = 0xaf,
	OPCODE_XRC_READ_RESPONSE_ONLY = 0xb0,
	OPCODE_XRC_ACKNOWLEDGE = 0xb1,
	OPCODE_XRC_ATOMIC_ACKNOWLEDGE = 0xb2,
	OPCODE_XRC_COMPARE_SWAP = 0xb3,
	OPCODE_XRC_FETCH_ADD = 0xb4,
	OPCODE_XRC_SEND_LAST_INV = 0xb6,
	OPCODE_XRC_SEND_ONLY_INV = 0xb7,
	OPCODE_XRC_FLUSH = 0xbc,
	OPCODE_XRC_ATOMIC_WRITE = 0xbd,

	/* Congestion notification packet; the service bits are 100. */
	OPCODE_CNP = 0x81,
};
/* clang-format on */

enum opcode_kind {
	OPCODE_KIND_SEND,
	OPCODE_KIND_WRITE,
	OPCODE_KIND_READ_REQUEST,
	OPCODE_KIND_READ_RESPONSE,
	OPCODE_KIND_ACK,
	OPCODE_KIND_COMPARE_SWAP,
	OPCODE_KIND_FETCH_ADD,
	OPCODE_KIND_ATOMIC_ACK,
	OPCODE_KIND_FLUSH,
	OPCODE_KIND_ATOMIC_WRITE,
	OPCODE_KIND_CNP,
	OPCODE_KIND_RESERVED,
};

enum opcode_position {
	OPCODE_FIRST,
	OPCODE_MIDDLE,
	OPCODE_LAST,
	OPCODE_ONLY,
};

/*
 * Extension headers, in the order in which they follow the BTH: the header of
 * the lowest bit comes first.
 */
enum opcode_ext {
	OPCODE_EXT_DETH = 1 << 0,
	OPCODE_EXT_XRCETH = 1 << 1,
	OPCODE_EXT_FETH = 1 << 2,
	OPCODE_EXT_RETH = 1 << 3,
	OPCODE_EXT_ATOMICETH = 1 << 4,
	OPCODE_EXT_AETH = 1 << 5,
	OPCODE_EXT_ATOMICACKETH = 1 << 6,
	OPCODE_EXT_IMMDT = 1 << 7,
	OPCODE_EXT_IETH = 1 << 8,
};

struct opcode_info {
	const char *name; /* for example "RC SEND_FIRST" */
	enum opcode_service service;
	enum opcode_kind kind;
	enum opcode_position position;
	uint16_t ext;	       /* bits of enum opcode_ext */
	uint8_t header_bytes;  /* bytes of the BTH and all extension headers */
	bool request;	       /* the sender is the requester */
	bool payload;	       /* payload and padding are allowed */
	bool memory_placement; /* an operation of IBTA A19 */
};

/* Returns the row of an opcode; NULL if the opcode is reserved in a service
 * other than RC, or is of RD or of the services 6 and 7. */
const struct opcode_info *opcode_info(uint8_t opcode);

/*
 * Returns the opcode of one packet of a SEND, WRITE or READ response.  `tail`
 * names the header that only the message's last packet has: OPCODE_EXT_IMMDT;
 * OPCODE_EXT_IETH, for a SEND alone; 0: there is no such header.  `tail` is
 * ignored for first and middle packets, and for a READ response.
 */
uint8_t opcode_of(enum opcode_service service, enum opcode_kind kind,
		  enum opcode_position position, enum opcode_ext tail);

/* Returns the three service bits of an opcode, which may be 6 or 7: enum
 * opcode_service has no name for these two. */
static inline enum opcode_service opcode_service(uint8_t opcode)
{
	return (enum opcode_service)(opcode >> 5);
}

/* Returns whether the packet is the first one of its message. */
static inline bool opcode_starts(const struct opcode_info *info)
{
	return info->position == OPCODE_FIRST || info->position == OPCODE_ONLY;
}

/* Returns whether the packet is the last one of its message. */
static inline bool opcode_ends(const struct opcode_info *info)
{
	return info->position == OPCODE_LAST || info->position == OPCODE_ONLY;
}

#endif
