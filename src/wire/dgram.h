/* SPDX-License-Identifier: BSD-2-Clause */
/* A datagram as the files of wire/ receive and send it. */
#ifndef WIRE_DGRAM_H
#define WIRE_DGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "util/inaddr.h"

/*
 * One datagram, or several datagrams of one flow in a row, which the kernel
 * will segment (GSO) or has joined (GRO).  Each but the last has `segment`
 * bytes; the last may be shorter.  `bytes` is borrowed: udp_receive says for
 * how long.
 */
struct udp_dgram {
	struct inaddr from, to;
	/* The interface by which the datagram has come or is to be sent; 0:
	 * any.  Link-local addresses and groups need an interface. */
	uint32_t ifindex;
	const uint8_t *bytes;
	size_t len;	/* bytes of all datagrams */
	size_t segment; /* bytes of each datagram but the last */
	uint8_t tos;	/* ToS or traffic class */
	uint8_t ttl;	/* TTL or hop limit to send with; 0: the kernel's */
	/* Set by udp_send: the errno with which the kernel has refused the
	 * datagram, or some of its segments; 0: the datagram was sent. */
	int err;
};

#endif
