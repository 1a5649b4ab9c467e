/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IPoIB interfaces of a subnet (CMPROTO_INTERFACE), found by MAC: the
 * kernel of a host knows its neighbours by MACs alone, which are hashes of QPN
 * and GID (ipoib/hwaddr.h).  Messages of programs are not trusted.  Owner:
 * fabric_cm, one thread.
 */
#ifndef TOOLS_FABRIC_INTERFACE_H
#define TOOLS_FABRIC_INTERFACE_H

#include <stdint.h>

#include "broker/cmproto.h"
#include "ipoib/hwaddr.h"
#include "util/list.h"

/* An IPoIB interface; a member of the client that runs the interface. */
struct fabric_interface {
	struct list link;      /* in the list of the subnet's interfaces */
	struct hwaddr address; /* the QPN and the GID */
	uint8_t mac[HWADDR_MAC_BYTES]; /* hwaddr_mac of `address` */
	uint16_t pkey;		       /* of the interface's partition */
	/* The interface's broadcast group; mtu 0: there is none. */
	struct cmproto_group broadcast;
};

/* Makes *i the interface that the message m describes, and puts *i at the end
 * of the list.  If m describes no interface (no P_Key, or an impossible
 * address), takes *i out of the list. */
void fabric_interface_set(struct list *all, struct fabric_interface *i,
			  const struct cmproto *m);
/* Finds the interface for which m asks (CMPROTO_INTERFACE_OF), and fills in
 * reply.  Returns 0, or -ENODEV: no interface has the MAC. */
int fabric_interface_find(const struct list *all, const struct cmproto *m,
			  struct cmproto *reply);

#endif
