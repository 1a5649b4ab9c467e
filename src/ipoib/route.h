/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The route of packets to a neighbour or to a group: the QPN, and the values of
 * the path as the subnet administration has given them.
 *
 * Owner: struct neigh or struct group; tools/ipoib_rc keeps copies.  One
 * thread; no lock.
 */
#ifndef IPOIB_ROUTE_H
#define IPOIB_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#define ROUTE_QPN_MULTICAST 0xffffffu /* the destination QPN of multicast */

struct route {
	uint8_t gid[16];     /* the destination's */
	uint32_t qpn;	     /* the neighbour's, or ROUTE_QPN_MULTICAST */
	uint32_t flow_label; /* 20 bits */
	/* The destination's LID or MLID; 0: the route is not known. */
	uint16_t lid;
	uint8_t sl;
	uint8_t rate; /* as enum ibv_rate */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t mtu;	   /* neighbour: of the path, as enum ibv_mtu */
	uint8_t life_time; /* neighbour: as in struct sa_path */
	bool is_global;	   /* the packet has a GRH */
	/* The address handle that ipoib_sink.packet has made of these fields;
	 * freed by ipoib_sink.release; NULL: none was made. */
	void *handle;
};

#endif
