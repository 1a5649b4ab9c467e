/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a queue pair's packets over UDP: the source GID and its
 * interface, the destination's address, the UDP source port, and what the
 * kernel can do for this path.  Stateless; the source ports belong to the
 * progress loop's socket (wire/sport.h).
 *
 * The front ends call path_find and path_aim; the other functions are for
 * host.c, and those with a queue pair's state are for the holder of the
 * progress lock.
 */
#ifndef HOST_PATH_H
#define HOST_PATH_H

#include "host/host.h"

/* Fills *to with the addresses and header fields of a datagram along the path
 * `ah`.  to->qpn and to->port stay 0.  Returns 0, or -EINVAL with *why. */
int path_find(struct host *h, const struct device *dev, const struct hca_ah *ah,
	      struct wq_to *to, const char **why);
/* Sets to->port, the UDP source port, for the address and the QPN in *to.  The
 * caller has set to->qpn. */
void path_aim(struct host *h, struct wq_to *to);

/* Looks up the path's source GID, and the interface that has this address.
 * Returns 0, or -EINVAL with *why. */
int path_source_gid(const struct device *dev, const struct hca_ah *ah,
		    uint8_t from[16], uint32_t *link, const char **why);
/* Does the device's port allow attr->path_mtu?  Returns 0, or -EINVAL with
 * *why. */
int path_check_mtu(const struct device *dev, const struct hca_qp_attr *attr,
		   const char **why);
/* Sets ah->local, and ah->bursts, for the path from the GID `from` to ah->dgid.
 * mask: of the host_qp_modify that sets the path. */
void path_fill(struct host *h, const uint8_t from[16], uint32_t mask,
	       struct hca_ah *ah);
/* Returns the UDP port that the queue pair sends from; 0: it has no path. */
uint16_t path_port(struct host *h, const struct ibt_qp *side);
/* Takes the UDP port that a connected queue pair sends from, after a
 * modification by attr and mask.  The caller releases the port by sport_give.
 */
uint16_t path_take_port(struct host *h, const struct ibt_qp *side,
			const struct hca_qp_attr *attr, uint32_t mask);

#endif
