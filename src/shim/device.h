/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device: the attributes of a device.  They are read from the sysfs tree
 * (util/runtime_tree.h) to answer netlink requests, so that `rdma link` and
 * /sys/class/infiniband always agree.
 *
 * device_read reads files, allocates nothing and takes no lock.
 */
#ifndef SHIM_DEVICE_H
#define SHIM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_MOST  32 /* device_read leaves out further devices */
#define DEVICE_PORTS 4	/* the most ports of a device */

/* The attributes of a port (IBTA 14.2.5.6).  Only ports of InfiniBand have the
 * attributes after phys_state, which are 0 for other ports. */
struct device_port {
	uint8_t state, phys_state;
	uint8_t lmc;
	uint16_t lid, sm_lid;
	uint32_t capabilities;
	uint64_t gid_prefix; /* host order */
};

struct device {
	uint32_t index; /* the N of uverbsN; ibv_get_device_index returns it */
	/* as in /sys/class/infiniband */
	char name[64];
	/* the firmware version; "": unknown */
	char firmware[64];
	uint64_t node_guid, image_guid; /* host order; 0: unknown */
	/* 1: a channel adapter (IBTA 14.2.5.3); 4: an iWARP device (the
	 * kernel's RDMA_NODE_RNIC) */
	uint8_t node_type;
	bool is_ib;	     /* the link layer of the ports is InfiniBand */
	uint32_t port_count; /* how many of `ports` are filled in */
	struct device_port ports[DEVICE_PORTS]; /* port 1 is ports[0] */
	char netdev[16];  /* the interface's name; "": unknown, or none */
	uint32_t ifindex; /* the interface's index; 0: unknown, or none */
};

/* Reads the devices in the tree of this network namespace into out, from index
 * 0 to the first index that no device has: out[i] is the device with index i.
 * Returns the number of devices read; 0 without a tree. */
uint32_t device_read(struct device out[DEVICE_MOST]);

#endif
