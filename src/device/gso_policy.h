/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decision whether datagrams may be sent with UDP_SEGMENT.  The ICRC covers
 * the IPv4 ids that the segments get.  On loopback and veth interfaces Linux
 * segments the datagram itself, with known ids, or delivers it unsegmented.  A
 * network card may choose other ids, so through a card each packet is sent as
 * one datagram.
 */
#ifndef DEVICE_GSO_POLICY_H
#define DEVICE_GSO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether the ids of segments from address `from` to `to` are known, so
 * that UDP_SEGMENT may be used. */
bool gso_policy_is_known(const uint8_t from[16], const uint8_t to[16]);

#endif
