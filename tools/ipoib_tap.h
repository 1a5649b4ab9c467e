/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TAP device of an IPoIB interface, and its addresses.  One thread; no
 * lock.
 */
#ifndef TOOLS_IPOIB_TAP_H
#define TOOLS_IPOIB_TAP_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipoib/announce.h"
#include "ipoib/joined.h"

/* The TAP device of one interface. */
struct ipoib_tap {
	int fd;		     /* of the device; non-blocking */
	int control;	     /* a socket, for the ioctls of interfaces */
	char name[IFNAMSIZ]; /* as the kernel last told it */
};

/* An address of IP and the length of its network's prefix. */
struct ipoib_tap_address {
	int family;	/* AF_INET or AF_INET6 */
	uint8_t ip[16]; /* in network order; AF_INET: the first 4 bytes */
	uint8_t prefix; /* bits of the prefix */
};

/* Reads "ADDRESS/LENGTH".  Returns whether the text has this form. */
bool ipoib_tap_parse(const char *text, struct ipoib_tap_address *a);
/* Makes the device, which has no carrier and no addresses.  name: at most 15
 * bytes.  Returns 0, or -1 after a sentence on stderr. */
int ipoib_tap_open(struct ipoib_tap *t, const char *name);
/* These three functions set the MAC, the MTU of IP in bytes, and the carrier of
 * the device.  Each returns 0 or -errno. */
int ipoib_tap_set_mac(const struct ipoib_tap *t, const uint8_t mac[6]);
int ipoib_tap_set_mtu(const struct ipoib_tap *t, uint32_t mtu);
int ipoib_tap_set_carrier(const struct ipoib_tap *t, bool is_on);
/* Enables the interface, as `ip link set up` does.  Returns 0 or -errno. */
int ipoib_tap_enable(const struct ipoib_tap *t);
/* Adds an address to the interface.  Returns 0 or -errno. */
int ipoib_tap_add(const struct ipoib_tap *t, const struct ipoib_tap_address *a);
/* Stores the interface's addresses, at most `room`, without those of IPv6 for
 * which duplicate address detection has not ended or has failed.  Returns how
 * many. */
uint32_t ipoib_tap_addresses(struct ipoib_tap *t, struct announce_address *all,
			     uint32_t room);
/* Reads which groups the kernel has joined at the interface, whose name may
 * have changed.  False: they cannot be read. */
bool ipoib_tap_joined(struct ipoib_tap *t, struct joined *j);

#endif
