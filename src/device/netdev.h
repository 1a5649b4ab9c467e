/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chooses the interfaces that become devices, and the entries of their GID
 * tables.  The functions read lists of links and addresses and make no system
 * call, so that tests can describe any machine.  netlink.c reads the lists of
 * this machine; netif.c owns the devices and their lock.
 *
 * The GID table of a RoCE device (docs/man/adverb.7):
 *
 *	0        the interface's link-local address as RoCE v2 or, if there is
 *	         none, the address made of its EUI-64 as RoCE v1
 *	1, 2, 3  the interface's first IPv4 address or, if there is none, its
 *	         first global IPv6 address: as RoCE v2, as v1, and as v2 again
 *	4 ...    as RoCE v2, while there is room: the interface's other
 *	         addresses; then, on the first RoCE device, the addresses,
 *	         other than link-local ones, of interfaces that are up and
 *	         are not RoCE devices, with loopback addresses at the end
 *	the last the address of index 1 as RoCE v2, for programs that look from
 *	         the last entry to the first (brpc): they would find a loopback
 *	         address
 *
 * An entry stays at its index while its address is one of these, with two
 * exceptions.  An IPv4 address replaces an IPv6 address at 1 to 3 and at the
 * last index.  If the address at 0, or at 1 to 3, is removed, another address
 * of the interface moves there.
 *
 * The table of an iWARP device has the same addresses, by which rdma_cm finds
 * the device.  Its entry 0 is empty if there is no link-local address, and the
 * first iWARP device has the addresses of interfaces that are not iWARP
 * devices.  Programs do not see this table.  They see one GID (netdev_gid).
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
	uint8_t mac[6];	  /* zeros: the interface has no Ethernet address */
	bool is_up;	  /* IFF_UP */
	bool has_carrier; /* IFF_RUNNING */
	bool is_loopback;
	bool is_bridge;
	bool is_port; /* the interface is a port of a bridge */
	/* The interface has a default route; false if no routes were read
	 * (netlink_read). */
	bool is_routed;
};

struct netdev_addr {
	uint32_t ifindex; /* the interface that has the address */
	uint8_t ip[16];	  /* IPv4 as ::ffff:a.b.c.d */
};

/* The interfaces and addresses of a machine at one time.  The caller that fills
 * the arrays owns them. */
struct netdev_scene {
	struct netdev_link *links;
	struct netdev_addr *addrs;
	uint32_t link_count, addr_count;
};

/* Enough bytes for IPv6, UDP, BTH, extension headers and ICRC. */
#define NETDEV_HEADER_BYTES 100

/* Returns the largest path MTU of RoCE that fits into an interface's MTU in
 * bytes, as enum ibv_mtu: 1 is 256 bytes, 5 is 4096 bytes.  Returns 1 if none
 * fits. */
static inline uint32_t netdev_path_mtu(uint32_t mtu)
{
	uint32_t code = 1;

	while (code < 5 && (256u << code) + NETDEV_HEADER_BYTES <= mtu)
		code++;
	return code;
}

/* The changes of a device, as bits.  In the order of the bits: the GID table
 * has changed; the port has become active; the port has gone down; the
 * interface's MTU has changed. */
enum { NETDEV_GIDS = 1, NETDEV_UP = 2, NETDEV_DOWN = 4, NETDEV_MTU = 8 };

/* The prefix that asks for the iWARP device of an interface in the user's
 * list. */
#define NETDEV_IWARP_PREFIX "iwarp:"

/*
 * Chooses the devices of a machine, and writes their names, addresses and ports
 * into devices.  `named` is the user's list (ADVERB_DEVICES), or NULL.  The
 * tokens of the list are separated by commas:
 *
 *	NAME		the RoCE device of this interface
 *	iwarp:NAME	the iWARP device of this interface
 *	roce		the RoCE devices of the preferred interfaces
 *	iwarp		the iWARP devices of the preferred interfaces
 *
 * Without a list, the devices are those of "roce".  netdev.c says which
 * interfaces are preferred (enum sort).  Returns the number of devices, which
 * may be 0; devices beyond DEVICE_MAX are left out.  No lock: the arrays are
 * the caller's.
 */
uint32_t netdev_choose(const struct netdev_scene *scene, const char *named,
		       struct device devices[DEVICE_MAX]);
/* Returns the first token of the user's list that fits no interface, or that
 * fits an interface which is not among the devices.  The result is a pointer
 * into `named`, and *len is the token's length in bytes.  Returns NULL if there
 * is no such token, and leaves *len as it is.  `named` must not be NULL. */
const char *netdev_missing(const struct netdev_scene *scene, const char *named,
			   const struct device *devices, uint32_t count,
			   int *len);
/* Returns whether `token`, len bytes of such a list, fits an interface. */
bool netdev_fits(const struct netdev_scene *scene, const char *token,
		 size_t len);

/* Returns the number of entries of the GID table that programs see. */
static inline uint32_t netdev_gid_count(const struct device *d)
{
	return d->kind == DEVICE_IWARP ? 1
	       : d->kind == DEVICE_IB  ? FABRIC_GUIDS
				       : DEVICE_MAX_GIDS;
}

/* Sets *gid to an entry of the GID table that programs see.  A RoCE device has
 * the table port->gids.  An iWARP device has one entry: the GUID, followed by
 * eight zero bytes.  An entry of an InfiniBand device is the subnet's GID
 * prefix followed by a GUID of the port.  Returns false if there is no entry at
 * the index; *gid is then all zeros. */
bool netdev_gid(const struct device *d, const struct device_port *port,
		uint32_t index, struct device_gid *gid);
/* Updates the ports of the devices, and sets changes[i] to the NETDEV_* bits of
 * the changes of device i.  If the interface of a device no longer exists, the
 * device's port is down.  The caller holds the lock of the ports (netif.c). */
void netdev_update(const struct netdev_scene *scene, struct device *devices,
		   uint32_t count, uint32_t *changes);

#endif
