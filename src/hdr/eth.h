/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ethernet II header (IEEE 802.3, 3.1.1), untagged.
 *
 *	+---- destination 48 ----+---- source 48 ----+-- type 16 --+
 */
#ifndef HDR_ETH_H
#define HDR_ETH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETH_BYTES	  14
#define ETH_ADDRESS_BYTES 6
#define ETH_TYPE_IPV4	  0x0800
#define ETH_TYPE_IPV6	  0x86dd
#define ETH_TYPE_ROCEV1	  0x8915 /* IBTA A16 */

struct eth {
	uint8_t dst[ETH_ADDRESS_BYTES];
	uint8_t src[ETH_ADDRESS_BYTES];
	uint16_t type;
};

/* Reads a header at p.  Returns false if len < ETH_BYTES. */
bool eth_parse(const uint8_t *p, size_t len, struct eth *eth);
/* Writes ETH_BYTES at p. */
void eth_write(uint8_t *p, const struct eth *eth);

#endif
