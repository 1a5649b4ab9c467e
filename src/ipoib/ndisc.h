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

/* The direction of a translation. */
enum ndisc_way {
	NDISC_TO_HWADDR, /* MACs become addresses of IPoIB */
	NDISC_TO_MAC,	 /* addresses of IPoIB become MACs */
};

/* Translates the hardware address `from` of an interface to the address `to` of
 * the same interface.  False: `to` is not known, so the message is refused. */
typedef bool ndisc_find(void *ctx, const uint8_t *from, uint8_t *to);

/* Do the len bytes at p begin with an IPv6 header directly followed by a
 * message of neighbour discovery?  False if an extension header is between. */
bool ndisc_is(const uint8_t *p, size_t len);
/*
 * Translates the packet at p, for which ndisc_is is true, and writes the result
 * to `out`.  Returns the length of the result.  0: the result would be longer
 * than `room`; the packet's checksum, hop limit, code or length is wrong; an
 * option has a wrong length; the option 1 or 2 occurs twice; or `find` has
 * refused an address.
 */
size_t ndisc_translate(const uint8_t *p, size_t len, enum ndisc_way way,
		       ndisc_find *find, void *ctx, uint8_t *out, size_t room);

#endif
