/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hardware addresses of IPoIB (RFC 4391, 9.1.1): 20 bytes, with the QPN and
 * the GID of an interface.
 *
 *	+---------------+-----------------------------------------------+
 *	|    flags      |                     QPN                       |
 *	+---------------+-----------------------------------------------+
 *	|                         GID, 128 bits                         |
 *	+---------------------------------------------------------------+
 *
 * The kernel knows an interface by a MAC instead, which is a hash of QPN and
 * GID.  The hash has no secret, so each process that knows QPN and GID can
 * compute the MAC.  Pure.
 */
#ifndef IPOIB_HWADDR_H
#define IPOIB_HWADDR_H

#include <stdbool.h>
#include <stdint.h>

#define HWADDR_BYTES	 20
#define HWADDR_MAC_BYTES 6

struct hwaddr {
	uint32_t qpn; /* 24 bits */
	uint8_t gid[16];
	/* The interface takes connections of type RC.  Neither the MAC nor
	 * hwaddr_is_equal depends on this flag. */
	bool is_connected;
};

/* Can an interface have the address?  False: the QP is 0, 1 or that of
 * multicast, or the GID is 0 or that of a group. */
bool hwaddr_is_interface(const struct hwaddr *a);
/* Reads an address at p, of HWADDR_BYTES, with the flag of RC (RFC 4755, 3.1);
 * other flags are left out.  Returns false if no interface has the address:
 * the QP is 0, 1 or that of multicast, or the GID is 0 or that of a group. */
bool hwaddr_parse(const uint8_t *p, struct hwaddr *a);
/* Writes HWADDR_BYTES at p. */
void hwaddr_write(uint8_t *p, const struct hwaddr *a);
/* Have the two addresses the same QPN and GID? */
bool hwaddr_is_equal(const struct hwaddr *a, const struct hwaddr *b);
/* Computes the MAC of an address: a unicast address, locally administered. */
void hwaddr_mac(const struct hwaddr *a, uint8_t mac[HWADDR_MAC_BYTES]);
/* Writes the link-local IPv6 address of an interface with this GID to ip
 * (RFC 4391, 8). */
void hwaddr_link_local(const uint8_t gid[16], uint8_t ip[16]);

#endif
