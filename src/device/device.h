/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices: each is one network interface of this machine.  The table of
 * devices is made when it is first asked for and is stable until the process
 * ends; the state of a port may change at any time.  Thread-safe.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/hca.h"

#define DEVICE_MAX	HCA_MAX_DEVICES
#define DEVICE_MAX_GIDS 64

enum { DEVICE_GID_ROCE_V1 = 0, DEVICE_GID_ROCE_V2 = 1 };

struct device_gid {
	uint8_t gid[16];
	uint32_t type;	  /* HOST_GID_*; meaningless while gid is zero */
	uint32_t ifindex; /* of the netdev that has the address; 0: no entry */
};

/* What of a device may change while a program runs. */
struct device_port {
	uint32_t is_up;	     /* 0 or 1: no hole in what gets a checksum */
	uint32_t mtu;	     /* bytes, of the interface */
	uint32_t active_mtu; /* IBV_MTU_*: the largest path MTU that fits */
	struct device_gid gids[DEVICE_MAX_GIDS]; /* with holes */
};

/* One RDMA device: a network interface.  Constant but for the port. */
struct device {
	char name[20];	 /* "adv0" */
	char netdev[16]; /* "eth0" */
	uint32_t ifindex;
	uint8_t mac[6];
	uint64_t guid;		 /* host order, never 0 */
	struct device_port port; /* netif.c's lock: read it by device_port() */
};

/* The devices of this machine: their count, and the table in *devices. */
uint32_t device_list(const struct device **devices);
/* The port as it is now. */
void device_port(const struct device *dev, struct device_port *port);
/* An entry of its GID table; false without one at this index. */
bool device_gid(const struct device *dev, uint32_t index,
		struct device_gid *gid);

enum device_event {
	DEVICE_EVENT_UP,
	DEVICE_EVENT_DOWN,
	DEVICE_EVENT_GIDS,
	DEVICE_EVENTS
};

#endif
