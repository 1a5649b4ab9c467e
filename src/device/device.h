/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA devices.  A device is a network interface of this machine, over which
 * adverb runs RoCE or iWARP, or the adapter of a host of an emulated
 * InfiniBand subnet (`adverb fabric`).  The first call of device_list makes the
 * table of devices, which stays the same until the process ends.  The state of
 * a port may change at any time.  Every function is thread-safe.
 */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/counters.h"
#include "fabric/proto.h"
#include "hca/hca.h"

#define DEVICE_MAX	HCA_MAX_DEVICES
#define DEVICE_MAX_GIDS 64

/* The values of device_gid.type. */
enum { DEVICE_GID_ROCE_V1 = 0, DEVICE_GID_ROCE_V2 = 1 };

/* The protocols by which devices send. */
enum device_kind {
	DEVICE_ROCE,  /* RoCEv2, "adv0" */
	DEVICE_IWARP, /* iWARP over TCP or SCTP, "iw0" */
	DEVICE_IB,    /* packets of an InfiniBand link, "advib0" */
};

struct device_gid {
	uint8_t gid[16]; /* in network order */
	uint32_t type;	 /* DEVICE_GID_*; InfiniBand: 0 */
	/* The entry's interface; 0: the entry is empty, or the device is an
	 * InfiniBand device. */
	uint32_t ifindex;
};

/* The part of a device that may change while a program runs. */
struct device_port {
	/* 0 or 1.  The type is not bool, since sysfs.c computes a hash of all
	 * bytes, and the bytes of padding would be undefined. */
	uint32_t is_up;
	/* The interface's MTU in bytes.  InfiniBand: the most bytes of payload
	 * in a packet. */
	uint32_t mtu;
	/* IBV_MTU_*.  RoCE: the largest path MTU whose packets, with all
	 * headers, fit into mtu.  iWARP: the largest that is not above mtu.
	 * InfiniBand: the code of mtu. */
	uint32_t active_mtu;
	/* The GID table of RoCE.  For iWARP these are the addresses of the
	 * device, which verbs do not show (netdev_gid).  InfiniBand: zeros. */
	struct device_gid gids[DEVICE_MAX_GIDS];
	/* InfiniBand: the fabric's last report of the port's state, which
	 * includes the GUIDs of the GID table.  Other devices: zeros. */
	struct fabric_port subnet;
};

/* One RDMA device.  A network interface may be two devices, one of RoCE and one
 * of iWARP.  All members but `ports` are constant. */
struct device {
	char name[20];	 /* for example "adv0" or "iw0" */
	char netdev[16]; /* the interface's name, "eth0"; InfiniBand: "" */
	char node_desc[FABRIC_PROTO_NAME]; /* NodeDescription */
	uint32_t ifindex;     /* the interface's index; InfiniBand: 0 */
	uint8_t mac[6];	      /* the interface's MAC; InfiniBand: zeros */
	uint64_t guid;	      /* NodeGUID, in host order, never 0 */
	uint64_t system_guid; /* SystemImageGUID, in host order */
	uint32_t kind;	      /* enum device_kind */
	uint32_t port_count;  /* ports 1 to port_count exist */
	/* InfiniBand: the fabric lets programs execute requests direct. */
	bool may_go_direct;
	/* Port number 1 is ports[0].  A lock of netif.c protects the ports, so
	 * other code reads them by device_port(). */
	struct device_port ports[HCA_MAX_PORTS];
};

/* Returns the number under which a process publishes the device's counters; 0:
 * the device is an InfiniBand device, whose counters are not published. */
static inline uint32_t device_link(const struct device *dev)
{
	return dev->ifindex | (dev->kind == DEVICE_IWARP ? COUNTERS_IWARP : 0);
}

/* Returns the number of devices, which may be 0, and in *devices the table,
 * which is never freed. */
uint32_t device_list(const struct device **devices);
/* Copies the present state of port `number` to *port.  Returns false, and sets
 * *port to zeros, if the device has no such port. */
bool device_port(const struct device *dev, uint32_t number,
		 struct device_port *port);
/* Copies an entry of the GID table of port `number` to *gid.  Returns false if
 * the device has no such port, or the table has no entry at the index; *gid is
 * then undefined. */
bool device_gid(const struct device *dev, uint32_t number, uint32_t index,
		struct device_gid *gid);

/* The changes of a port that netif_watch reports.  Only ports of an InfiniBand
 * device have the events after DEVICE_EVENT_GIDS. */
enum device_event {
	DEVICE_EVENT_UP,	 /* is_up became 1 */
	DEVICE_EVENT_DOWN,	 /* is_up became 0 */
	DEVICE_EVENT_GIDS,	 /* an entry of the GID table changed */
	DEVICE_EVENT_LID,	 /* the LID or the LMC changed */
	DEVICE_EVENT_SM,	 /* the subnet manager's LID or SL changed */
	DEVICE_EVENT_PKEYS,	 /* an entry of the P_Key table changed */
	DEVICE_EVENT_REREGISTER, /* the subnet manager asks programs to join
				    their groups again */
	DEVICE_EVENTS		 /* the number of the events above */
};

#endif
