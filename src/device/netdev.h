/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which interfaces are devices, and what stands in their GID tables: decided
 * from lists of links and addresses alone, with no system call, so that tests
 * can make up any machine.  netlink.c reads the lists of this one, netif.c
 * owns what comes out and locks it.
 *
 * A GID table (docs/man/adverb.7):
 *
 *	0        link local; without one, an EUI-64 that is RoCE v1
 *	1, 2, 3  the interface's first IPv4 address (without one: its first
 *	         global IPv6 one) as RoCE v2, v1 and v2 again
 *	4 ...    its other addresses; then, on the first device, those of all
 *	         interfaces that are no device, loopback's last
 *
 * An entry stays at its index as long as its address stays, but for IPv6 at
 * 1 to 3 when an IPv4 address comes.
 */
#ifndef DEVICE_NETDEV_H
#define DEVICE_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

struct netdev_link {
	uint32_t ifindex;
	uint32_t mtu; /* bytes */
	char name[16];
	uint8_t mac[6];
	bool is_up, has_carrier;
	bool is_loopback;
	bool is_bridge;
	bool is_port;	/* of a bridge */
	bool is_routed; /* a default route leaves by it */
};

struct netdev_addr {
	uint32_t ifindex;
	uint8_t ip[16]; /* IPv4 mapped */
};

/* One machine at one moment; whoever filled the arrays owns them. */
struct netdev_scene {
	struct netdev_link *links;
	struct netdev_addr *addrs;
	uint32_t link_count, addr_count;
};

/* IP, UDP, BTH, the longest extended headers and the ICRC, over IPv6. */
#define NETDEV_HEADER_BYTES 100

/* The path MTU that packets of so many bytes have room for, as verbs number
 * them: 1 is 256 bytes, 5 is 4096. */
static inline uint32_t netdev_path_mtu(uint32_t mtu)
{
	uint32_t code = 1;

	while (code < 5 && (256u << code) + NETDEV_HEADER_BYTES <= mtu)
		code++;
	return code;
}

enum { NETDEV_GIDS = 1, NETDEV_UP = 2, NETDEV_DOWN = 4, NETDEV_MTU = 8 };

/*
 * The devices of a machine; `named` is the user's list of interfaces or NULL.
 * How many; their ports are as netdev_update leaves them.
 */
uint32_t netdev_choose(const struct netdev_scene *scene, const char *named,
		       struct device devices[DEVICE_MAX]);
/* The first name of the user's list that became no device, `len` bytes of it;
 * NULL if all did. */
const char *netdev_missing(const char *named, const struct device *devices,
			   uint32_t count, int *len);
/* Brings the ports up to date; changes[i]: what is new at device i, NETDEV_*.
 */
void netdev_update(const struct netdev_scene *scene, struct device *devices,
		   uint32_t count, uint32_t *changes);

#endif
