/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nldev: what the kernel would answer to requests of NETLINK_RDMA about devices
 * and links (linux/rdma_netlink.h, RDMA_NL_NLDEV), as `rdma link` makes them.
 * Other requests get EOPNOTSUPP and a sentence.
 *
 * Pure: a request and the devices in, messages out.  The request is the
 * program's own, and is checked like anybody's.
 */
#ifndef SHIM_NLDEV_H
#define SHIM_NLDEV_H

#include "shim/device.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>

#define NLDEV_BYTES 16384 /* more than DEVICE_MOST devices take */

/* Messages, each of which goes into a datagram of its own. */
struct nldev_answer {
	_Alignas(NLMSG_ALIGNTO) char bytes[NLDEV_BYTES];
	size_t size;
	uint32_t portid; /* of the socket that asks */
	bool explains;	 /* it wants sentences: NETLINK_EXT_ACK */
};

/*
 * Adds to @a what is answered to one request, whose @request->nlmsg_len bytes
 * are there.
 */
void nldev_answer(struct nldev_answer *a, const struct nlmsghdr *request,
		  const struct device *devices, uint32_t count);

#endif
