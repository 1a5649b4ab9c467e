/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is an address one of this network namespace's own?  Asked of the kernel by
 * rtnetlink(7), or where a sandbox refuses that, by binding a socket to the
 * address.  No state, no lock; some microseconds, and nothing waits.
 */
#ifndef WIRE_LOCAL_IP_H
#define WIRE_LOCAL_IP_H

#include <stdbool.h>
#include <stdint.h>

/* scope: the interface of a link-local address; 0: any. */
bool local_ip_is(const uint8_t ip[16], uint32_t scope);

#endif
