/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/gso_policy.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/netif.h"

static bool is_veth(uint32_t ifindex)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq r = {.ifr_data = (void *)&info};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool yes;

	if (fd < 0)
		return false;
	yes = ifindex && if_indextoname(ifindex, r.ifr_name) &&
	      !ioctl(fd, SIOCETHTOOL, &r) && !strcmp(info.driver, "veth");
	close(fd);
	return yes;
}

bool gso_policy_is_known(const uint8_t from[16], const uint8_t to[16])
{
	return netif_is_local(to) || is_veth(netif_index(from, 0));
}
