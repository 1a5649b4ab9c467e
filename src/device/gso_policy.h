/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May frames of several datagrams (UDP_SEGMENT) go from here to there?  The
 * ICRC counts on the IPv4 ids that Linux gives the pieces.  It gives them, or
 * carries the whole to the receiver, on loopback and on a veth; what a network
 * card puts there is its maker's choice, so through one goes packet by packet.
 */
#ifndef DEVICE_GSO_POLICY_H
#define DEVICE_GSO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

bool gso_policy_is_known(const uint8_t from[16], const uint8_t to[16]);

#endif
