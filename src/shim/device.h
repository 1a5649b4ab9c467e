/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device: the attributes of a device, read from the tree to answer netlink
 * requests.  So `rdma link` and /sys/class/infiniband always agree.
 *
 * Reads files; allocates nothing and takes no lock.
 */
#ifndef SHIM_DEVICE_H
#define SHIM_DEVICE_H

#include <stdint.h>

#define DEVICE_MOST 32

struct device {
	uint32_t index; /* the N of uverbsN; ibv_get_device_index returns it */
	char name[64];
	char firmware[64];
	uint64_t node_guid, image_guid; /* host order */
	/* IBTA 14.2.5.3: 1 is a CA; the kernel: 4 is a device of iWARP */
	uint8_t node_type;
	uint8_t state, phys_state; /* IBTA 14.2.5.6, port 1 */
	char netdev[16];	   /* the interface's name; "": unknown */
	uint32_t ifindex;	   /* the interface's index; 0: unknown */
};

/* Reads the devices in the tree of this network namespace into out, by index.
 * Returns their number. */
uint32_t device_read(struct device out[DEVICE_MOST]);

#endif
