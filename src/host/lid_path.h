/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of packets by LID: of a queue pair, or of an address handle, of an
 * InfiniBand device.  The subnet manager has given the ports their LIDs and
 * their state.  Stateless.
 */
#ifndef HOST_LID_PATH_H
#define HOST_LID_PATH_H

#include "device/device.h"
#include "hca/hca.h"

/* path_find for an InfiniBand device: fills in *to.  The datagram leaves by the
 * port of its queue pair, so path bits and source GID that are not that port's
 * make a datagram that its receiver cannot answer.  Returns 0, or -EINVAL with
 * *why. */
int lid_path_find(const struct device *dev, const struct hca_ah *ah,
		  struct wq_to *to, const char **why);
/* Checks what host_qp_modify sets of a QP of an InfiniBand device, and fills in
 * the members of attr->ah that are the host's.  Returns 0, or -EINVAL with
 * *why. */
int lid_path_set(const struct device *dev, struct hca_qp_attr *attr,
		 uint32_t mask, const char **why);
/* Prints a sentence if the port through which a connection shall go is not
 * active, so that no packet of it arrives. */
void lid_path_say_inactive(const struct device *dev, uint32_t number);

#endif
