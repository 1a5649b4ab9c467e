/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells whether an address belongs to this network namespace.  Asks the kernel
 * by rtnetlink(7).  Where a sandbox refuses rtnetlink, tries to bind a socket
 * to the address.  bind(2) needs the interface of a link-local address; if the
 * caller does not give the interface, reads /proc/net/if_inet6 instead.  No
 * state, no lock; takes some microseconds and does not block.
 */
#ifndef WIRE_LOCAL_IP_H
#define WIRE_LOCAL_IP_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether ip, an IPv6 address or ::ffff:a.b.c.d, is an address of this
 * network namespace.  `scope` is the index of the interface of a link-local
 * address; 0: any interface that is not in a VRF.  If the process has no free
 * descriptor, returns true for a loopback address alone. */
bool local_ip_is(const uint8_t ip[16], uint32_t scope);

#endif
