/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides whether datagrams may be sent with UDP_SEGMENT.  The ICRC of a packet
 * covers the IPv4 id of its segment.  On loopback and veth interfaces, Linux
 * segments the datagram itself, with known ids, or delivers it unsegmented.  A
 * network card may choose other ids, so through all other interfaces each
 * packet is sent as one datagram.
 */
#ifndef DEVICE_GSO_POLICY_H
#define DEVICE_GSO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether UDP_SEGMENT may be used for datagrams from address `from` to
 * address `to`, because the IPv4 ids of their segments are known.  An IPv4
 * address has the form ::ffff:a.b.c.d. */
bool gso_policy_is_known(const uint8_t from[16], const uint8_t to[16]);

#endif
