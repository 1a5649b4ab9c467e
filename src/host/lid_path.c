/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/lid_path.h"

#include <errno.h>
#include <string.h>

#include "host/path_check.h"
#include "log/log.h"

/* PortState (IBTA 14.2.5.6) */
static const char *const states[] = {"", "Down", "Initialize", "Armed",
				     "Active"};

/* Copies the state of port ah->port_num to *port.  Returns 0, or -EINVAL with
 * *why. */
static int find_port(const struct device *dev, const struct hca_ah *ah,
		     struct device_port *port, const char **why)
{
	if (device_port(dev, ah->port_num, port))
		return 0;
	*why = "ah_attr.port_num is not the number of a port of the device; "
	       "use a number from 1 to the device's phys_port_cnt "
	       "(ibv_query_device)";
	return -EINVAL;
}

static int source_gid(const struct device *dev, const struct hca_ah *ah,
		      uint8_t gid[16], const char **why)
{
	struct device_gid entry;
	int err;

	memset(gid, 0, 16);
	if (!ah->is_global)
		return 0;
	err = path_check_gid(dev, ah->port_num, ah->sgid_index, &entry, why);
	if (!err)
		memcpy(gid, entry.gid, 16);
	return err;
}

/* Checks the destination LID and the SL of a path.  A multicast packet has a
 * GRH (IBTA Vol 1, 10.5.1). */
static int check_lid(const struct hca_ah *ah, const char **why)
{
	enum { FIRST_MULTICAST = 0xc000, PERMISSIVE = 0xffff };

	*why = "ah_attr.dlid must be the LID of a port, 1 to 0xbfff, or of a "
	       "multicast group, 0xc000 to 0xfffe";
	if (!ah->dlid || ah->dlid == PERMISSIVE)
		return -EINVAL;
	*why = "a multicast LID needs ah_attr.is_global 1 and the group's GID";
	if (ah->dlid >= FIRST_MULTICAST && !ah->is_global)
		return -EINVAL;
	*why = "ah_attr.sl is above 15; give the SL of the path, 0 to 15";
	return ah->sl > 15 ? -EINVAL : 0;
}

int lid_path_find(const struct device *dev, const struct hca_ah *ah,
		  struct wq_to *to, const char **why)
{
	struct device_port port;
	int err = find_port(dev, ah, &port, why);

	*to = (struct wq_to){.tos = ah->traffic_class,
			     .ttl = ah->hop_limit,
			     .mtu = (uint8_t)port.active_mtu,
			     .has_grh = ah->is_global,
			     .lid = {.dlid = ah->dlid,
				     .sl = ah->sl,
				     .path_bits = ah->src_path_bits,
				     .port_num = (uint8_t)ah->port_num},
			     .flow_label = ah->flow_label & 0xfffff};
	memcpy(to->to, ah->dgid, 16);
	if (!err)
		err = check_lid(ah, why);
	return err ? err : source_gid(dev, ah, to->from, why);
}

static int set_alternate(const struct device *dev, struct hca_ah *ah,
			 const char **why)
{
	struct device_port port;
	int err = find_port(dev, ah, &port, why);

	ah->bursts = ah->local = 0;
	ah->port = 0;
	return err ? err : source_gid(dev, ah, ah->sgid, why);
}

int lid_path_set(const struct device *dev, struct hca_qp_attr *attr,
		 uint32_t mask, const char **why)
{
	struct device_port port;
	int err = 0;

	if (mask & HCA_QP_PORT && !device_port(dev, attr->port_num, &port)) {
		*why = "port_num is not the number of a port of the device; "
		       "use a number from 1 to the device's phys_port_cnt "
		       "(ibv_query_device)";
		return -EINVAL;
	}
	attr->ah.bursts = attr->ah.local = 0;
	attr->ah.port = 0;
	if (mask & HCA_QP_ALT_PATH)
		err = set_alternate(dev, &attr->alt_ah, why);
	if (err || !(mask & HCA_QP_AV))
		return err;
	err = find_port(dev, &attr->ah, &port, why);
	if (!err)
		err = source_gid(dev, &attr->ah, attr->ah.sgid, why);
	if (!err && mask & HCA_QP_PATH_MTU)
		err = path_check_mtu(dev, attr->ah.port_num, attr, why);
	return err;
}

void lid_path_say_inactive(const struct device *dev, uint32_t number)
{
	struct device_port port;

	if (!device_port(dev, number, &port) || port.is_up)
		return;
	log_say(LOG_PORT_INACTIVE, number,
		"device %s: port %u is in the state %s and not Active, so no "
		"packet of its queue pairs arrives; connect the port to a "
		"switch in the file of the fabric (adverb fabric --show), and "
		"run a subnet manager (opensm) on a host of the fabric",
		dev->name, number, states[port.subnet.state]);
}
