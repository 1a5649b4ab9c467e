/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cache of netif's last answers about addresses of datagrams.  A peer usually
 * sends many datagrams to the same device, so a cached answer saves a search of
 * the GID tables.  An answer is valid as long as netif_version stays the same.
 *
 * Owner: struct progress; starts as {0}.  Lock: the progress lock.
 */
#ifndef HOST_ADDRESSES_H
#define HOST_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct engine_frame;

struct addresses {
	uint8_t from[16];   /* `ip` of the last call of addresses_is_local */
	bool from_is_local; /* the result for `from` */
	uint32_t from_at;   /* netif_version when `from` was looked up */
	/* The last unicast address for which addresses_device has found a
	 * device. */
	uint8_t own[16];
	uint32_t own_link;   /* the interface that received the datagram */
	uint32_t own_at;     /* netif_version when `own` was looked up */
	uint32_t own_device; /* the index of the device that has `own` */
};

/* Is ip, in the form ::ffff:a.b.c.d if IPv4, in the GID table of a RoCE device
 * of this host? */
bool addresses_is_local(struct addresses *a, const uint8_t ip[16]);
/* Returns the index of the device that has `ip`, the destination address of a
 * datagram (netif_device).  ifindex: the interface that received the datagram.
 * -1: no device has the address. */
int addresses_device(struct addresses *a, const uint8_t ip[16],
		     uint32_t ifindex);
/* Returns the index of the interface by which a frame has to be sent: the
 * interface that has the source address, if the frame goes to a multicast group
 * or comes from a link-local address; else 0, and the kernel chooses. */
uint32_t addresses_interface(const struct engine_frame *f);

#endif
