/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last answers of netif about addresses of datagrams, which save a search
 * of the GID tables: a peer usually sends many datagrams to the same device. An
 * answer holds for one netif_version.  Lock: the progress lock.
 */
#ifndef HOST_ADDRESSES_H
#define HOST_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct engine_frame;

struct addresses {
	uint8_t from[16];    /* the last argument of addresses_is_local */
	bool from_is_local;  /* the answer */
	uint32_t from_at;    /* netif_version at that time */
	uint8_t own[16];     /* the last destination that a device has */
	uint32_t own_link;   /* the interface that received it */
	uint32_t own_at;     /* netif_version at that time */
	uint32_t own_device; /* the index of that device */
};

/* Is ip an address of this host? */
bool addresses_is_local(struct addresses *a, const uint8_t ip[16]);
/* Returns the index of the device that has the destination address ip of a
 * datagram received by interface @ifindex; -1: none has.  See netif_device. */
int addresses_device(struct addresses *a, const uint8_t ip[16],
		     uint32_t ifindex);
/* Returns the interface by which a frame has to be sent: to a multicast group,
 * and from a link-local address, the interface that has the source address;
 * else 0, which leaves the choice to the kernel. */
uint32_t addresses_interface(const struct engine_frame *f);

#endif
