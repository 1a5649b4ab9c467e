/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/path_check.h"

#include <errno.h>

int path_check_gid(const struct device *dev, uint32_t number, uint32_t index,
		   struct device_gid *gid, const char **why)
{
	*why = "the port's GID table has no entry at sgid_index; ibv_devinfo "
	       "-v lists the entries";
	return device_gid(dev, number, index, gid) ? 0 : -EINVAL;
}

int path_check_mtu(const struct device *dev, uint32_t number,
		   const struct hca_qp_attr *attr, const char **why)
{
	struct device_port port;

	device_port(dev, number, &port);
	if (attr->path_mtu <= port.active_mtu)
		return 0;
	*why = "path_mtu is above the port's active_mtu; use active_mtu or "
	       "less";
	return -EINVAL;
}
