/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Neighbour discovery (RFC 4861, 4): replaces the hardware addresses in the
 * options 1 and 2 of solicitations, advertisements and redirects.
 *
 *	on Ethernet              on IPoIB (RFC 4391, 9.3)
 *	+------+------+-----+    +------+------+-----------+---------+
 *	| type |  1   | MAC |    | type |  3   | 2 bytes 0 | address |
 *	+------+------+-----+    +------+------+-----------+---------+
 *
 * So a message gets 16 bytes longer or shorter for each such option, and has
 * another checksum.  Pure.
 */
#ifndef IPOIB_NDISC_H
#define IPOIB_NDISC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which addresses a message has, and which it gets. */
enum ndisc_way {
	NDISC_TO_HWADDR, /* MACs become addresses of IPoIB */
	NDISC_TO_MAC,	 /* addresses of IPoIB become MACs */
};

/* Finds the address `to` of the same interface as `from`.  False: there is
 * none, so the message is refused. */
typedef bool ndisc_find(void *ctx, const uint8_t *from, uint8_t *to);

/* Is the packet of IPv6, of len bytes at p, such a message?  A message behind
 * an extension header is none. */
bool ndisc_is(const uint8_t *p, size_t len);
/*
 * Writes the message at p, for which ndisc_is is true, to `out`, with other
 * addresses.  Returns its length; 0: the message is longer than `room`, its
 * checksum, hop limit, code or length is wrong, an option has a wrong length,
 * or `find` has refused an address.
 */
size_t ndisc_translate(const uint8_t *p, size_t len, enum ndisc_way way,
		       ndisc_find *find, void *ctx, uint8_t *out, size_t room);

#endif
