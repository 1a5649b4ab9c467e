/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nldev: the answers that the kernel would give to requests of NETLINK_RDMA
 * about devices and links (linux/rdma_netlink.h, RDMA_NL_NLDEV), which `rdma
 * link` sends.  The answer to any other request is EOPNOTSUPP and a sentence.
 *
 * Pure: makes messages from a request and the devices.  The request comes from
 * the program, and is checked like all input.
 */
#ifndef SHIM_NLDEV_H
#define SHIM_NLDEV_H

#include "shim/device.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>

#define NLDEV_BYTES 16384 /* more than DEVICE_MOST devices take */

/* The messages of an answer; each one is sent as a datagram of its own. */
struct nldev_answer {
	_Alignas(NLMSG_ALIGNTO) char bytes[NLDEV_BYTES];
	size_t size;	 /* how many of the bytes are used */
	uint32_t portid; /* the port ID of the socket that asks */
	/* the socket has NETLINK_EXT_ACK: errors get a sentence */
	bool explains;
};

/* Appends the answer to one request to @a, whose other members the caller has
 * set.  The caller has checked that the request has request->nlmsg_len bytes,
 * and at least a header.  What does not fit into @a is left out. */
void nldev_answer(struct nldev_answer *a, const struct nlmsghdr *request,
		  const struct device *devices, uint32_t count);

#endif
