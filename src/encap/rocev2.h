/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RoCEv2 (IBTA A17): a transport packet as the payload of one UDP datagram,
 * with its ICRC.  The IP header is not in our hands: it is taken to have DF
 * and the id that an unconnected socket gives: 0, or n for segment n of a
 * datagram that the kernel cuts up (UDP_SEGMENT).  IPv6 has no id.  Pure.
 */
#ifndef ENCAP_ROCEV2_H
#define ENCAP_ROCEV2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

#define ROCEV2_PORT 4791

/* Put the ICRC behind `len` bytes at p (room for 4 more); the new length. */
size_t rocev2_seal(const struct inaddr *from, const struct inaddr *to,
		   uint8_t *p, size_t len, uint16_t id);
/*
 * Is p, BTH to ICRC, intact?  With a UDP checksum that was right, any id and
 * DF is taken; without one only DF and id 0 or the one expected.
 */
bool rocev2_open(const struct inaddr *from, const struct inaddr *to,
		 const uint8_t *p, size_t len, uint16_t id, bool checksummed);

#endif
