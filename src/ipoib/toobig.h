/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells the kernel that a packet of IP is longer than its destination takes:
 * "fragmentation needed" for IPv4 (RFC 792, with the MTU of RFC 1191, 4) and
 * "packet too big" for IPv6 (RFC 4443, 3.2).  Pure.
 *
 *	+---------------+---------------+-------------------------------+
 *	|     type      |     code      |           checksum            |
 *	+---------------+---------------+-------------------------------+
 *	|  IPv4: 16 bits 0, then the MTU; IPv6: the MTU in 32 bits      |
 *	+---------------------------------------------------------------+
 *	|  the first bytes of the packet                                |
 *	+---------------------------------------------------------------+
 */
#ifndef IPOIB_TOOBIG_H
#define IPOIB_TOOBIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOOBIG_MAX 176 /* bytes of a message, with its header of IP */

/*
 * Writes the message about the packet of IP at p, whose header the caller's
 * kernel has made, to `out`.  mtu: bytes of IP that the destination takes.  The
 * message seems to come from the packet's destination.  Returns the message's
 * length; 0: no message may be sent, since the packet is malformed, goes to a
 * group or to an IPv4 address from 240.0.0.0 on, has the IPv4 source 0.0.0.0,
 * or may itself be an error message of ICMP.
 */
size_t toobig_write(const uint8_t *p, size_t len, uint32_t mtu,
		    uint8_t out[TOOBIG_MAX]);

#endif
