/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common header of management datagrams (IBTA Vol 1, 13.4.2).
 *
 *	+---------------+---------------+---------------+---------------+
 *	| BaseVersion   |  MgmtClass    | ClassVersion  |R|   Method    |
 *	+---------------+---------------+---------------+---------------+
 *	|            Status             |        ClassSpecific          |
 *	+-------------------------------+-------------------------------+
 *	|                      TransactionID, 64 bits                   |
 *	+-------------------------------+-------------------------------+
 *	|         AttributeID           |           reserved            |
 *	+-------------------------------+-------------------------------+
 *	|                      AttributeModifier                        |
 *	+---------------------------------------------------------------+
 */
#ifndef HDR_MAD_H
#define HDR_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_BYTES	    256		/* the whole datagram */
#define MAD_HEADER_BYTES    24		/* the common header */
#define MAD_METHOD_RESPONSE 0x80	/* bit R */
#define MAD_QP1_QKEY	    0x80010000u /* of QP1 (IBTA Vol 1, 10.2.5) */

struct mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method; /* with MAD_METHOD_RESPONSE in a response */
	uint16_t status;
	uint16_t class_specific;
	uint64_t transaction_id;
	uint16_t attribute_id;
	uint32_t attribute_modifier;
};

/* Reads a header at p.  Returns false if len < MAD_HEADER_BYTES. */
bool mad_parse(const uint8_t *p, size_t len, struct mad *mad);
/* Writes MAD_HEADER_BYTES at p. */
void mad_write(uint8_t *p, const struct mad *mad);

#endif
