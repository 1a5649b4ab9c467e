/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a queue pair's packets over UDP: the source GID and its
 * interface, the destination's address, the UDP source port, and whether the
 * kernel may segment frames on this path.  Stateless; the source ports belong
 * to the progress loop's socket (wire/sport.h).
 *
 * The front ends call path_find and path_aim; host.c calls the other functions.
 * path_port and path_take_port need the progress lock.  path_aim takes the lock
 * itself if it has to open a socket.
 */
#ifndef HOST_PATH_H
#define HOST_PATH_H

#include "host/host.h"

/* Sets *to to the addresses and header fields of a datagram by the path `ah`;
 * for an InfiniBand device as lid_path_find does.  to->qpn and to->port become
 * 0.  Returns 0, or -EINVAL with a constant sentence in *why. */
int path_find(struct host *h, const struct device *dev, const struct hca_ah *ah,
	      struct wq_to *to, const char **why);
/* Sets to->port, the UDP source port, for the address and the QPN in *to, which
 * the caller has set.  If no socket can be opened for them, the port is that of
 * another socket of this process. */
void path_aim(struct host *h, struct wq_to *to);

/* Stores the path's source GID in `from`, and the index of the interface that
 * has this address in *link.  Returns 0, or -EINVAL with a constant sentence in
 * *why. */
int path_source_gid(const struct device *dev, const struct hca_ah *ah,
		    uint8_t from[16], uint32_t *link, const char **why);
/* Sets ah->local (the peer is on this host) and ah->bursts (the kernel may
 * segment frames) for the path from the GID `from` to ah->dgid.  @mask: the
 * mask of host_qp_modify; without HCA_QP_AV, ah->bursts becomes false. */
void path_fill(struct host *h, const uint8_t from[16], uint32_t mask,
	       struct hca_ah *ah);
/* Returns the UDP port that the queue pair sends from; 0: the queue pair has no
 * path over UDP. */
uint16_t path_port(struct host *h, const struct ibt_qp *side);
/* Takes and returns the UDP port that a queue pair is to send from once attr
 * and mask have modified the queue pair.  The caller releases the port by
 * sport_give. */
uint16_t path_take_port(struct host *h, const struct ibt_qp *side,
			const struct hca_qp_attr *attr, uint32_t mask);

#endif
