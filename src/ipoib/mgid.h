/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast GIDs of IPoIB (RFC 4391, 4): a group of IP has a GID in which
 * the scope and the P_Key are those of the broadcast group.
 *
 *	   16 bits     16 bits   16 bits            80 bits
 *	+-----------+-----------+---------+-----------------------------+
 *	| ff1S      | signature |  P_Key  |          group ID           |
 *	+-----------+-----------+---------+-----------------------------+
 *
 * The signature is 401b for IPv4, where the group ID is the address's low 28
 * bits, and 601b for IPv6, where it is the address's low 80 bits.  Pure.
 */
#ifndef IPOIB_MGID_H
#define IPOIB_MGID_H

#include <stdbool.h>
#include <stdint.h>

/* Writes the GID of a partition's broadcast group, with link-local scope.  pkey
 * has the bit of full membership. */
void mgid_broadcast(uint16_t pkey, uint8_t mgid[16]);
/* Writes the GID of the multicast address ip, which is in host order.
 * broadcast: the GID of the broadcast group. */
void mgid_ipv4(const uint8_t broadcast[16], uint32_t ip, uint8_t mgid[16]);
/* Writes the GID of the multicast address ip.  broadcast: the GID of the
 * broadcast group. */
void mgid_ipv6(const uint8_t broadcast[16], const uint8_t ip[16],
	       uint8_t mgid[16]);
/* Returns whether ip, which is in host order, is a multicast address. */
bool mgid_is_ipv4(uint32_t ip);

#endif
