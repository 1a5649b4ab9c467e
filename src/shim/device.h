/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * device: what the tree says of a device, for those who ask by netlink.  So
 * `rdma link` and /sys/class/infiniband never tell two things.
 *
 * Reads files; allocates nothing, no lock.
 */
#ifndef SHIM_DEVICE_H
#define SHIM_DEVICE_H

#include <stdint.h>

#define DEVICE_MOST 32

struct device {
	uint32_t index; /* of uverbsN, and what ibv_get_device_index says */
	char name[64];
	char firmware[64];
	uint64_t node_guid, image_guid; /* host order */
	uint8_t node_type;		/* IBTA 14.2.5.3: 1 is a CA */
	uint8_t state, phys_state;	/* IBTA 14.2.5.6, of port 1 */
	char netdev[16];		/* its interface; "": not known */
	uint32_t ifindex;
};

/* Those of the tree of this network namespace, by index; the count. */
uint32_t device_read(struct device out[DEVICE_MOST]);

#endif
