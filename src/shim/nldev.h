/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nldev: the answers that the kernel would give to requests of NETLINK_RDMA
 * about devices and links (linux/rdma_netlink.h, RDMA_NL_NLDEV), such as those
 * of `rdma link`.  The answer to any other request is an NLMSG_ERROR with
 * EOPNOTSUPP.  As in the kernel, a message that is no request (no
 * NLM_F_REQUEST, or a control message) is only acknowledged, if it has
 * NLM_F_ACK.
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
	/* the socket has NETLINK_EXT_ACK: an EOPNOTSUPP comes with a text */
	bool explains;
};

/* Appends the answer to one request to a->bytes.  The caller has set a->size,
 * a->portid and a->explains, and has checked that the request has
 * request->nlmsg_len bytes, and at least a header.  `devices` has `count`
 * devices, of which devices[i] has the index i (device_read).  Leaves an
 * attribute out if a->bytes has no room for it, and a whole message if a->bytes
 * has no room for the message's fixed part. */
void nldev_answer(struct nldev_answer *a, const struct nlmsghdr *request,
		  const struct device *devices, uint32_t count);

#endif
