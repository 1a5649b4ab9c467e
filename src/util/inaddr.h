/* SPDX-License-Identifier: BSD-2-Clause */
/* An Internet address and port.  An IPv4 address is stored as ::ffff:a.b.c.d,
 * as in a RoCE GID. */
#ifndef UTIL_INADDR_H
#define UTIL_INADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct inaddr {
	uint8_t ip[16];
	uint16_t port; /* host order */
};

/* Returns whether ip is an IPv4 address, stored as ::ffff:a.b.c.d. */
static inline bool inaddr_is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

/* Sets ip to ::ffff:a.b.c.d, where a.b.c.d are the four bytes at `four`, an
 * IPv4 address in network order. */
static inline void inaddr_map_v4(uint8_t ip[16], const void *four)
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, four, 4);
}

/* Returns whether two addresses are equal. */
static inline bool inaddr_has_same_ip(const uint8_t a[16], const uint8_t b[16])
{
	return memcmp(a, b, 16) == 0;
}

/* Returns whether ip is a multicast group: 224.0.0.0/4 or ff00::/8. */
static inline bool inaddr_is_multicast(const uint8_t ip[16])
{
	return inaddr_is_v4(ip) ? ip[12] >> 4 == 0xe : ip[0] == 0xff;
}

/* Returns whether ip is in 127.0.0.0/8 (RFC 1122, 3.2.1.3), or is ::1. */
static inline bool inaddr_is_loopback(const uint8_t ip[16])
{
	static const uint8_t one[16] = {[15] = 1};

	return inaddr_is_v4(ip) ? ip[12] == 127 : memcmp(ip, one, 16) == 0;
}

/* Returns whether ip is an IPv6 link-local address (RFC 4291, 2.5.6).  For an
 * IPv4 link-local address the result is false. */
static inline bool inaddr_is_link_local(const uint8_t ip[16])
{
	return ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

/*
 * Sets ip to 100::LID, the address that stands for an InfiniBand LID (IBTA Vol
 * 1, 4.1.3) where code keeps an IP address of a queue pair or of its peer.
 * 100::/64 is the discard-only prefix (RFC 6666): routers discard packets to
 * it, so no peer on an IP network has such an address.
 */
static inline void inaddr_map_lid(uint8_t ip[16], uint16_t lid)
{
	memset(ip, 0, 16);
	ip[0] = 1;
	ip[14] = (uint8_t)(lid >> 8);
	ip[15] = (uint8_t)lid;
}

/* Returns the LID for which ip stands; inaddr_is_lid(ip) must be true. */
static inline uint16_t inaddr_lid(const uint8_t ip[16])
{
	return (uint16_t)(ip[14] << 8 | ip[15]);
}

/* Returns whether ip stands for a LID. */
static inline bool inaddr_is_lid(const uint8_t ip[16])
{
	static const uint8_t mapped[14] = {1};

	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

#endif
