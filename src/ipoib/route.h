/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The route of a packet to a neighbour or to a group: the fields of the
 * packet's headers, as the subnet administration has given them.
 */
#ifndef IPOIB_ROUTE_H
#define IPOIB_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#define ROUTE_QPN_MULTICAST 0xffffffu

struct route {
	uint8_t gid[16]; /* the destination's */
	uint32_t qpn;
	uint32_t flow_label; /* 20 bits */
	uint16_t lid;	     /* 0: the route is not known yet */
	uint8_t sl;
	uint8_t rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t mtu;	   /* of the path: 1 to 5 */
	uint8_t life_time; /* as in struct sa_path */
	bool is_global;	   /* the packet has a GRH */
	/* The program's address handle for these fields; NULL: it has none. */
	void *handle;
};

#endif
