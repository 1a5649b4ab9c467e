/* SPDX-License-Identifier: BSD-2-Clause */
#include "hdr/opcode.h"

#include <stddef.h>

#include "hdr/aeth.h"
#include "hdr/bth.h"
#include "hdr/ext.h"

/* Flags of a row, for the members of struct opcode_info. */
#define REQUEST			 1 /* request */
#define PAYLOAD			 2 /* payload */
#define PLACEMENT		 4 /* memory_placement */

#define SIZE_IF(ext, bit, bytes) ((ext)&OPCODE_EXT_##bit ? (bytes) : 0)
#define HEADER_BYTES(ext)                                                      \
	(BTH_BYTES + SIZE_IF(ext, DETH, EXT_DETH_BYTES) +                      \
	 SIZE_IF(ext, XRCETH, EXT_XRCETH_BYTES) +                              \
	 SIZE_IF(ext, FETH, EXT_FETH_BYTES) +                                  \
	 SIZE_IF(ext, RETH, EXT_RETH_BYTES) +                                  \
	 SIZE_IF(ext, ATOMICETH, EXT_ATOMICETH_BYTES) +                        \
	 SIZE_IF(ext, AETH, AETH_BYTES) +                                      \
	 SIZE_IF(ext, ATOMICACKETH, EXT_ATOMICACKETH_BYTES) +                  \
	 SIZE_IF(ext, IMMDT, EXT_IMMDT_BYTES) +                                \
	 SIZE_IF(ext, IETH, EXT_IETH_BYTES))

#define ROW(svc, op, what, where, headers, flags)                              \
	[OPCODE_##svc##_##op] = {                                              \
		.name = #svc " " #op,                                          \
		.service = OPCODE_SERVICE_##svc,                               \
		.kind = OPCODE_KIND_##what,                                    \
		.position = OPCODE_##where,                                    \
		.ext = (headers),                                              \
		.header_bytes = HEADER_BYTES(headers),                         \
		.request = ((flags)&REQUEST) != 0,                             \
		.payload = ((flags)&PAYLOAD) != 0,                             \
		.memory_placement = ((flags)&PLACEMENT) != 0,                  \
	}

#define DETH	     OPCODE_EXT_DETH
#define XRCETH	     OPCODE_EXT_XRCETH
#define FETH	     OPCODE_EXT_FETH
#define RETH	     OPCODE_EXT_RETH
#define ATOMICETH    OPCODE_EXT_ATOMICETH
#define AETH	     OPCODE_EXT_AETH
#define ATOMICACKETH OPCODE_EXT_ATOMICACKETH
#define IMMDT	     OPCODE_EXT_IMMDT
#define IETH	     OPCODE_EXT_IETH

/* clang-format off */

/* The operations of RC, UC and XRC.  S: the service; X: the extension headers
 * that each request of the service has. */
#define CONNECTED(S, X) \
	ROW(S, SEND_FIRST,     SEND,  FIRST,  X,                REQUEST | PAYLOAD), \
	ROW(S, SEND_MIDDLE,    SEND,  MIDDLE, X,                REQUEST | PAYLOAD), \
	ROW(S, SEND_LAST,      SEND,  LAST,   X,                REQUEST | PAYLOAD), \
	ROW(S, SEND_LAST_IMM,  SEND,  LAST,   X | IMMDT,        REQUEST | PAYLOAD), \
	ROW(S, SEND_ONLY,      SEND,  ONLY,   X,                REQUEST | PAYLOAD), \
	ROW(S, SEND_ONLY_IMM,  SEND,  ONLY,   X | IMMDT,        REQUEST | PAYLOAD), \
	ROW(S, WRITE_FIRST,    WRITE, FIRST,  X | RETH,         REQUEST | PAYLOAD), \
	ROW(S, WRITE_MIDDLE,   WRITE, MIDDLE, X,                REQUEST | PAYLOAD), \
	ROW(S, WRITE_LAST,     WRITE, LAST,   X,                REQUEST | PAYLOAD), \
	ROW(S, WRITE_LAST_IMM, WRITE, LAST,   X | IMMDT,        REQUEST | PAYLOAD), \
	ROW(S, WRITE_ONLY,     WRITE, ONLY,   X | RETH,         REQUEST | PAYLOAD), \
	ROW(S, WRITE_ONLY_IMM, WRITE, ONLY,   X | RETH | IMMDT, REQUEST | PAYLOAD)

/* The operations that only the reliable services RC and XRC have. */
#define RELIABLE(S, X) \
	ROW(S, READ_REQUEST,         READ_REQUEST,  ONLY,   X | RETH,            REQUEST), \
	ROW(S, READ_RESPONSE_FIRST,  READ_RESPONSE, FIRST,  AETH,                PAYLOAD), \
	ROW(S, READ_RESPONSE_MIDDLE, READ_RESPONSE, MIDDLE, 0,                   PAYLOAD), \
	ROW(S, READ_RESPONSE_LAST,   READ_RESPONSE, LAST,   AETH,                PAYLOAD), \
	ROW(S, READ_RESPONSE_ONLY,   READ_RESPONSE, ONLY,   AETH,                PAYLOAD), \
	ROW(S, ACKNOWLEDGE,          ACK,           ONLY,   AETH,                0), \
	ROW(S, ATOMIC_ACKNOWLEDGE,   ATOMIC_ACK,    ONLY,   AETH | ATOMICACKETH, 0), \
	ROW(S, COMPARE_SWAP,         COMPARE_SWAP,  ONLY,   X | ATOMICETH,       REQUEST), \
	ROW(S, FETCH_ADD,            FETCH_ADD,     ONLY,   X | ATOMICETH,       REQUEST), \
	ROW(S, SEND_LAST_INV,        SEND,          LAST,   X | IETH,            REQUEST | PAYLOAD), \
	ROW(S, SEND_ONLY_INV,        SEND,          ONLY,   X | IETH,            REQUEST | PAYLOAD), \
	ROW(S, FLUSH,                FLUSH,         ONLY,   X | FETH | RETH,     REQUEST | PLACEMENT), \
	ROW(S, ATOMIC_WRITE,         ATOMIC_WRITE,  ONLY,   X | RETH,            REQUEST | PAYLOAD | PLACEMENT)

/* A reserved opcode of RC, which the responder refuses (IBTA 9.9.3).  All bytes
 * after the BTH count as payload. */
#define RESERVED(op) \
	[op] = { \
		.name = "RC reserved", \
		.service = OPCODE_SERVICE_RC, \
		.kind = OPCODE_KIND_RESERVED, \
		.position = OPCODE_ONLY, \
		.header_bytes = BTH_BYTES, \
		.request = true, \
		.payload = true, \
	}

static const struct opcode_info table[256] = {
	CONNECTED(RC, 0),
	RELIABLE(RC, 0),
	RESERVED(0x15), RESERVED(0x18), RESERVED(0x19), RESERVED(0x1a),
	RESERVED(0x1b), RESERVED(0x1e), RESERVED(0x1f),
	CONNECTED(UC, 0),
	ROW(UD, SEND_ONLY,     SEND, ONLY, DETH,         REQUEST | PAYLOAD),
	ROW(UD, SEND_ONLY_IMM, SEND, ONLY, DETH | IMMDT, REQUEST | PAYLOAD),
	CONNECTED(XRC, XRCETH),
	RELIABLE(XRC, XRCETH),
	/* IBTA A17.9: a BTH and 16 reserved bytes, which count as payload. */
	[OPCODE_CNP] = {
		.name = "CNP",
		.service = OPCODE_SERVICE_CNP,
		.kind = OPCODE_KIND_CNP,
		.position = OPCODE_ONLY,
		.header_bytes = BTH_BYTES,
		.payload = true,
	},
};

/* clang-format on */

const struct opcode_info *opcode_info(uint8_t opcode)
{
	return table[opcode].name ? &table[opcode] : NULL;
}

/* Returns `plain`, the opcode of a packet without immediate data.  If `tail` is
 * ImmDt, returns plain + 1, the opcode of the same packet with immediate data.
 */
static uint8_t with_tail(unsigned int plain, enum opcode_ext tail)
{
	return (uint8_t)(tail == OPCODE_EXT_IMMDT ? plain + 1 : plain);
}

/* Returns the opcode of the packet at `position` of a SEND or WRITE.  first:
 * the lowest opcode of the operation, that of the packet at OPCODE_FIRST. */
static uint8_t message_opcode(unsigned int first, enum opcode_position position,
			      enum opcode_ext tail)
{
	switch (position) {
	case OPCODE_FIRST:
		return (uint8_t)first;
	case OPCODE_MIDDLE:
		return (uint8_t)(first + 1);
	case OPCODE_LAST:
		return with_tail(first + 2, tail);
	case OPCODE_ONLY:
		return with_tail(first + 4, tail);
	}
	return 0;
}

uint8_t opcode_of(enum opcode_service service, enum opcode_kind kind,
		  enum opcode_position position, enum opcode_ext tail)
{
	unsigned int base = (unsigned int)service << 5;

	if (kind == OPCODE_KIND_READ_RESPONSE)
		return (uint8_t)(base + OPCODE_RC_READ_RESPONSE_FIRST +
				 position);
	if (kind == OPCODE_KIND_WRITE)
		return message_opcode(base + OPCODE_RC_WRITE_FIRST, position,
				      tail);
	if (tail == OPCODE_EXT_IETH && position == OPCODE_LAST)
		return (uint8_t)(base + OPCODE_RC_SEND_LAST_INV);
	if (tail == OPCODE_EXT_IETH && position == OPCODE_ONLY)
		return (uint8_t)(base + OPCODE_RC_SEND_ONLY_INV);
	return message_opcode(base + OPCODE_RC_SEND_FIRST, position, tail);
}
