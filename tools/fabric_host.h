/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host with connection management, its ports, and its programs: the state
 * that fabric_cm and fabric_query share.  Owner: fabric_cm, one thread.
 */
#ifndef TOOLS_FABRIC_HOST_H
#define TOOLS_FABRIC_HOST_H

#include "fabric_cm.h"
#include "fabric_group.h"
#include "fabric_interface.h"

#include "broker/cm_inbox.h"
#include "broker/cmserver.h"
#include "fabric/fabric.h"
#include "fabric/gid.h"
#include "fabric/proto.h"
#include "hdr/mad.h"
#include "util/list.h"

enum {
	FABRIC_HOST_PKEYS = 64, /* entries of a port's P_Key table */
	FABRIC_HOST_NO_AGENT = -1,
	FABRIC_HOST_QP1 = 1,
};

struct cm_host;

/* A port of a host. */
struct host_port {
	struct fabric_cm_reader reader;
	struct cm_host *host;
	struct end *end; /* NULL: the host has no such port */
	uint32_t number;
	/* The end's agents for the MADs of the CM and of the SA.  cm_agent is
	 * FABRIC_HOST_NO_AGENT until fabric_cm_open has registered it, and
	 * while a program at the port has registered for the MADs of the CM. */
	int cm_agent, sa_agent;
	bool has_said; /* the user was told that a program has registered */
};

struct cm_host {
	struct list link;   /* in fabric_cm.hosts */
	struct list active; /* in fabric_cm.active */
	struct fabric_cm *cm;
	struct node *node;
	struct cmserver *server;
	struct list clients; /* struct fabric_cm_client.link */
	uint32_t client_count;
	struct list queries; /* for paths, of all clients */
	struct fabric_groups groups;
	struct host_port ports[FABRIC_PROTO_PORTS]; /* of port 1, 2... */
	uint64_t due_ns; /* of the next cmserver_tick */
};

struct fabric_cm_client {
	struct list link; /* in host.clients */
	struct cm_host *host;
	struct fabric_cm_client **place; /* see fabric_cm_open */
	struct cmserver_client *client;
	int fd;
	uint32_t query_count;
	bool is_full; /* the socket is full; epoll waits until it has room */
	/* The IPoIB interface that the program runs, if it runs one. */
	struct fabric_interface interface;
};

struct fabric_cm {
	struct fabric *fabric;
	struct fd_store no_store; /* a fabric has no successor */
	struct list hosts;
	uint32_t host_count;
	struct list active; /* hosts at which something has happened */
	int epoll;
	uint32_t last_id;	/* of a question */
	uint64_t due_ns;	/* the earliest due_ns of the hosts */
	struct list interfaces; /* struct fabric_interface, of clients */
	bool has_closed;	/* a descriptor, since the last turn */
	struct cm_inbox inbox;
};

/* Returns the host's port that has the GID, and stores its place; NULL: the
 * host has no such port. */
struct host_port *fabric_host_port(struct cm_host *h, const uint8_t gid[16],
				   struct gid_place *place);
/* Returns the index of a P_Key (0: the default one) in a port's table: of full
 * membership in its partition or, if the port has no other, of limited
 * membership.  FABRIC_HOST_PKEYS: the port is not in the partition. */
uint16_t fabric_host_pkey_index(const struct fabric_port *port, uint16_t pkey);
/* Sends a question to the subnet administration, from the port with the GID, up
 * to FABRIC_ROUTE_RETRIES + 1 times with pauses of try_ms.  Returns 0;
 * -ENETDOWN: the port is not active, or the host has none with the GID;
 * -ETIMEDOUT: the port knows no subnet manager, or has no agent for the SA; or
 * another -errno. */
int fabric_host_ask(struct cm_host *h, const uint8_t gid[16],
		    const uint8_t mad[MAD_BYTES], uint32_t try_ms);

#endif
