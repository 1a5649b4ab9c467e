/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces of this machine as RDMA devices (device_list, in host.h).
 * Which there are is read once, when first asked; their ports are kept up to
 * date by a thread of this file while a host exists.  One leaf lock around
 * the ports, taken inside.
 */
#ifndef DEVICE_NETIF_H
#define DEVICE_NETIF_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* Follow what happens to the interfaces and tell @port (may be NULL).  Where
 * that cannot be, the ports stay as they are. */
void netif_watch(void (*port)(const struct device *dev,
			      enum device_event what));
void netif_unwatch(void);
/* In a forked child: the parent's thread is not here. */
void netif_forget(void);

/*
 * The interface that an address of a GID table belongs to, 0: none.  Two may
 * have the same link-local address: `link`, if it is one of them, else any.
 */
uint32_t netif_index(const uint8_t ip[16], uint32_t link);
/* The same for a link-local source; 0 for all others. */
uint32_t netif_scope(const uint8_t ip[16], uint32_t link);
/* Another number after each change of the ports; never 0. */
uint32_t netif_version(void);
/* Is it an address of this machine that a GID table has? */
bool netif_is_local(const uint8_t ip[16]);
/* The number of the device that has it, or -1; of a group, which came in by
 * `link`, the one that is this interface or 0. */
int netif_device(const uint8_t ip[16], uint32_t link);
/* The MAC of the device with this interface, zeroes if none has it. */
void netif_mac(const uint8_t ip[16], uint8_t mac[6]);

/*
 * Prints a sentence if the path from the GID @from along @ah starts at a
 * loopback address and leads to another machine: no packet could arrive.
 */
void netif_say_unreachable(const uint8_t from[16], const struct hca_ah *ah);

#endif
