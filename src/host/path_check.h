/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of GIDs and MTUs against a port of the device, for paths over UDP
 * (path.h) and paths by LID (lid_path.h).  Stateless.
 */
#ifndef HOST_PATH_CHECK_H
#define HOST_PATH_CHECK_H

#include "device/device.h"
#include "hca/hca.h"

/* Copies the GID at an index of the table of port `number` to *gid.  Returns 0,
 * or -EINVAL with a constant sentence in *why. */
int path_check_gid(const struct device *dev, uint32_t number, uint32_t index,
		   struct device_gid *gid, const char **why);
/* Checks that port `number` of the device allows attr->path_mtu.  Returns 0, or
 * -EINVAL with a constant sentence in *why. */
int path_check_mtu(const struct device *dev, uint32_t number,
		   const struct hca_qp_attr *attr, const char **why);

#endif
