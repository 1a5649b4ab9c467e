/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paths of the queue pairs and address handles of an InfiniBand device: the
 * addresses and header fields of their packets, by LID.  The subnet manager has
 * given the ports their LIDs and their state.  Stateless.
 */
#ifndef HOST_LID_PATH_H
#define HOST_LID_PATH_H

#include "device/device.h"
#include "hca/hca.h"

/* Sets *to to the addresses and header fields of a datagram along the path `ah`
 * of an InfiniBand device.  Path bits and source GID are those of the path's
 * port, so only queue pairs of that port may send such datagrams
 * (ibt/ud_req.c).
 * Returns 0, or -EINVAL with a constant sentence in *why. */
int lid_path_find(const struct device *dev, const struct hca_ah *ah,
		  struct wq_to *to, const char **why);
/* Checks the attributes that host_qp_modify sets of a QP of an InfiniBand
 * device.  Sets bursts, local and port of attr->ah to 0 and, if mask has
 * HCA_QP_AV, sgid to the source GID.  If mask has HCA_QP_ALT_PATH, sets the
 * same members of attr->alt_ah.  Returns 0, or -EINVAL with a constant sentence
 * in *why. */
int lid_path_set(const struct device *dev, struct hca_qp_attr *attr,
		 uint32_t mask, const char **why);
/* Tells the user if port `number` of dev is not active, because then no packet
 * of a queue pair at this port arrives. */
void lid_path_say_inactive(const struct device *dev, uint32_t number);

#endif
