/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network interfaces as RDMA devices (host_devices, in host.h): read once,
 * when first asked, then constant.
 */
#ifndef HOST_NETIF_H
#define HOST_NETIF_H

#include <stdbool.h>
#include <stdint.h>

/* The interface that a link-local source belongs to; 0 for all others. */
uint32_t netif_scope(const uint8_t ip[16]);
/* Is it an address of this machine that a GID table has? */
bool netif_is_local(const uint8_t ip[16]);
/* The MAC of the device with this interface, zeroes if none has it. */
void netif_mac(const uint8_t ip[16], uint8_t mac[6]);

#endif
