/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out which groups of IP the kernel has joined at an interface, from the
 * texts of /proc/net/igmp and /proc/net/igmp6.  Pure.
 */
#ifndef IPOIB_JOINED_H
#define IPOIB_JOINED_H

#include <stdbool.h>
#include <stdint.h>

#define JOINED_MAX 256 /* groups */

struct joined_group {
	bool is_v6;
	uint32_t ipv4; /* in host order */
	uint8_t ipv6[16];
};

/* All zero is an empty list.  Groups beyond JOINED_MAX are left out. */
struct joined {
	uint32_t count;
	struct joined_group all[JOINED_MAX];
};

/* Adds the IPv4 groups of the interface `name`.  text: that of /proc/net/igmp,
 * which ends with a NUL.  Lines of another form are ignored. */
void joined_add_igmp(struct joined *j, const char *text, const char *name);
/* Adds the IPv6 groups of the interface `name`, except groups of
 * interface-local scope (RFC 4291, 2.7).  text: that of /proc/net/igmp6, which
 * ends with a NUL.  Lines of another form are ignored. */
void joined_add_igmp6(struct joined *j, const char *text, const char *name);

#endif
