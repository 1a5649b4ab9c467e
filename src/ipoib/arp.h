/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ARP for IPv4 (RFC 826), on Ethernet with addresses of 6 bytes, and on IPoIB
 * with addresses of 20 bytes (RFC 4391, 9.1.1).  Pure.
 *
 *	+-------------------------------+-------------------------------+
 *	|        hardware type          |        protocol 0x0800        |
 *	+---------------+---------------+-------------------------------+
 *	|   hw length   |  IP length 4  |          operation            |
 *	+---------------+---------------+-------------------------------+
 *	|  sender's hardware address and IP, then those of the target   |
 *	+---------------------------------------------------------------+
 */
#ifndef IPOIB_ARP_H
#define IPOIB_ARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipoib/hwaddr.h"

#define ARP_MAC_BYTES	 28 /* bytes of a packet on Ethernet */
#define ARP_HWADDR_BYTES 56 /* bytes of a packet on IPoIB */

struct arp {
	uint16_t operation;		    /* 1: a request; 2: a reply */
	uint8_t sender_ip[4], target_ip[4]; /* in network order */
	/* A MAC, in the first 6 bytes, or a hardware address of IPoIB. */
	uint8_t sender[HWADDR_BYTES], target[HWADDR_BYTES];
};

/* Reads a packet of Ethernet, and ignores bytes after it.  Returns false if len
 * < ARP_MAC_BYTES, or if the addresses are not MACs and IPv4 addresses. */
bool arp_parse_mac(const uint8_t *p, size_t len, struct arp *arp);
/* Reads a packet of IPoIB, and ignores bytes after it.  Returns false if len <
 * ARP_HWADDR_BYTES, or if the addresses are not hardware addresses of IPoIB and
 * IPv4 addresses. */
bool arp_parse_hwaddr(const uint8_t *p, size_t len, struct arp *arp);
/* Writes a packet of Ethernet, ARP_MAC_BYTES, at p. */
void arp_write_mac(uint8_t *p, const struct arp *arp);
/* Writes a packet of IPoIB, ARP_HWADDR_BYTES, at p. */
void arp_write_hwaddr(uint8_t *p, const struct arp *arp);

#endif
