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

struct fabric_interface {
	struct list link; /* in the list of the subnet's interfaces */
	struct hwaddr address;
	uint8_t mac[HWADDR_MAC_BYTES];
	uint16_t pkey; /* of the interface's partition */
	/* The interface's broadcast group; mtu 0: there is none. */
	struct cmproto_group broadcast;
};

/* Makes *i the interface of the message m, and adds it to the list unless it is
 * there.  If the message describes no interface, *i leaves the list. */
void fabric_interface_set(struct list *all, struct fabric_interface *i,
			  const struct cmproto *m);
/* Finds the interface for which m asks (CMPROTO_INTERFACE_OF), and fills in
 * reply.  Returns 0 or -ENODEV. */
int fabric_interface_find(const struct list *all, const struct cmproto *m,
			  struct cmproto *reply);

#endif
