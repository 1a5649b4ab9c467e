/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last answers of netif about addresses of datagrams: a peer usually sends
 * many datagrams to the same device.  An answer holds for one netif_version.
 * Lock: the progress lock.
 */
#ifndef HOST_ADDRESSES_H
#define HOST_ADDRESSES_H

#include <stdbool.h>
#include <stdint.h>

struct engine_frame;

struct addresses {
	uint8_t from[16]; /* the source that the last call asked about */
	bool from_is_local;
	uint32_t from_at; /* netif_version */
	uint8_t own[16];  /* the last destination that is a device's */
	uint32_t own_at;  /* netif_version */
	uint32_t own_device;
};

/* Is ip an address of this host? */
bool addresses_is_local(struct addresses *a, const uint8_t ip[16]);
/* The device that a datagram to ip is for, which came in by @ifindex; or -1. */
int addresses_device(struct addresses *a, const uint8_t ip[16],
		     uint32_t ifindex);
/* The interface to send a frame out of: to a multicast group the interface that
 * has the source address. */
uint32_t addresses_interface(const struct engine_frame *f);

#endif
