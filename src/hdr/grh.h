/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Global Route Header (IBTA Vol 1, 8.3), which has the format of an IPv6
 * header.
 *
 *	+-------+---------------+---------------------------------------+
 *	|   6   | Traffic Class |              Flow Label               |
 *	+-------+---------------+-------+---------------+---------------+
 *	|        Payload Length         |  Next Header  |   Hop Limit   |
 *	+-------------------------------+---------------+---------------+
 *	|                  SGID, then DGID, 128 bits each               |
 *	+---------------------------------------------------------------+
 */
#ifndef HDR_GRH_H
#define HDR_GRH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRH_BYTES	    40
#define GRH_NEXT_HEADER_IBA 0x1b

struct grh {
	uint8_t traffic_class;
	uint32_t flow_label;	 /* 20 bits */
	uint16_t payload_length; /* bytes after this header, ICRC included */
	uint8_t next_header;
	uint8_t hop_limit;
	uint8_t sgid[16];
	uint8_t dgid[16];
};

/* Reads a GRH at p.  Returns false if the header and its payload are longer
 * than `len`, or if the version is not 6. */
bool grh_parse(const uint8_t *p, size_t len, struct grh *grh);
/* Writes GRH_BYTES at p. */
void grh_write(uint8_t *p, const struct grh *grh);

#endif
