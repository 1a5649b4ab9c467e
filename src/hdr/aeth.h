/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACK Extended Transport Header (IBTA Vol 1, 9.3.5) and the codes of its
 * syndrome (IBTA 9.7.5.2).
 *
 *	+-+-----+-----------+-----------------------------------------------+
 *	|0|kind |   value   |           Message Sequence Number             |
 *	+-+-----+-----------+-----------------------------------------------+
 *	 7 6   5 4         0
 *
 *	kind 0	ACK, value = end-to-end credit code
 *	kind 1	RNR NAK, value = timer code
 *	kind 2	reserved
 *	kind 3	NAK, value = error code
 */
#ifndef HDR_AETH_H
#define HDR_AETH_H

#include <stdbool.h>
#include <stdint.h>

#define AETH_BYTES	4
#define AETH_VALUE_MASK 0x1f
/* The credit code of a responder without end-to-end credits (IBTA 9.7.7.2). */
#define AETH_CREDITS_INVALID 0x1f

struct aeth {
	uint8_t syndrome; /* the first byte: kind and value */
	uint32_t msn;	  /* 24 bits */
};

enum aeth_kind {
	AETH_ACK,
	AETH_RNR_NAK,
	AETH_RESERVED,
	AETH_NAK,
};

/* NAK codes; the codes above these are reserved (IBTA 9.7.5.2). */
enum aeth_nak {
	AETH_NAK_PSN_SEQUENCE = 0,
	AETH_NAK_INVALID_REQUEST = 1,
	AETH_NAK_REMOTE_ACCESS = 2,
	AETH_NAK_REMOTE_OPERATIONAL = 3,
	AETH_NAK_INVALID_RD_REQUEST = 4,
};

/* Reads AETH_BYTES at p. */
void aeth_parse(const uint8_t *p, struct aeth *aeth);
/* Writes AETH_BYTES at p. */
void aeth_write(uint8_t *p, const struct aeth *aeth);

/* Returns the kind of a syndrome; if bit 7 is set, the kind is AETH_RESERVED.
 */
static inline enum aeth_kind aeth_kind(uint8_t syndrome)
{
	if (syndrome & 0x80)
		return AETH_RESERVED;
	return (enum aeth_kind)(syndrome >> 5);
}

/* Returns the value of a syndrome.  The kind tells whether the value is a
 * credit code, an RNR timer code or a NAK code. */
static inline uint8_t aeth_value(uint8_t syndrome)
{
	return syndrome & AETH_VALUE_MASK;
}

/* Returns false for a reserved kind or NAK code. */
static inline bool aeth_is_known(uint8_t syndrome)
{
	switch (aeth_kind(syndrome)) {
	case AETH_ACK:
	case AETH_RNR_NAK:
		return true;
	case AETH_RESERVED:
		return false;
	case AETH_NAK:
		return aeth_value(syndrome) <= AETH_NAK_INVALID_RD_REQUEST;
	}
	return false;
}

/* Returns the syndrome of a kind and the low five bits of `value`. */
static inline uint8_t aeth_syndrome(enum aeth_kind kind, uint8_t value)
{
	return (uint8_t)(kind << 5 | (value & AETH_VALUE_MASK));
}

/* Returns the time in nanoseconds of the RNR timer code in the low five bits of
 * `code` (IBTA 9.7.5.2.8). */
uint64_t aeth_rnr_timer_ns(uint8_t code);
/* Returns the local ACK timeout in nanoseconds of the low five bits c of
 * `code`: 4.096 us * 2^c.  Returns 0 if c is 0, which disables the timeout. */
uint64_t aeth_ack_timeout_ns(uint8_t code);

#endif
