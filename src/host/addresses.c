/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/addresses.h"

#include <string.h>

#include "device/netif.h"
#include "engine/engine.h"
#include "util/inaddr.h"

bool addresses_is_local(struct addresses *a, const uint8_t ip[16])
{
	uint32_t version = netif_version();

	if (a->from_at != version || !inaddr_has_same_ip(ip, a->from)) {
		memcpy(a->from, ip, 16);
		a->from_at = version;
		a->from_is_local = netif_is_local(ip);
	}
	return a->from_is_local;
}

int addresses_device(struct addresses *a, const uint8_t ip[16],
		     uint32_t ifindex)
{
	uint32_t version = netif_version();
	int device;

	if (a->own_at == version && a->own_link == ifindex &&
	    inaddr_has_same_ip(a->own, ip))
		return (int)a->own_device;
	device = netif_device(ip, ifindex);
	if (device < 0 || inaddr_is_multicast(ip))
		return device;
	memcpy(a->own, ip, 16);
	a->own_link = ifindex;
	a->own_device = (uint32_t)device;
	a->own_at = version;
	return device;
}

uint32_t addresses_interface(const struct engine_frame *f)
{
	return inaddr_is_multicast(f->to.ip) ? netif_index(f->from.ip, f->link)
					     : netif_scope(f->from.ip, f->link);
}
