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
	struct fabric_cm_reader reader; /* takes the MADs of `end` */
	struct cm_host *host;
	struct end *end; /* NULL: the host has no such port */
	uint32_t number; /* of the port; the first is 1 */
	/* The end's agents for the MADs of the CM and of the SA.  cm_agent is
	 * FABRIC_HOST_NO_AGENT until fabric_cm_open has registered the agent,
	 * and stays so while a program at the port has registered for the MADs
	 * of the CM.  sa_agent is negative if it could not be registered. */
	int cm_agent, sa_agent;
	bool has_said; /* the user was told that a program has registered */
};

/* A host with connection management. */
struct cm_host {
	struct list link;   /* in fabric_cm.hosts */
	struct list active; /* in fabric_cm.active */
	struct fabric_cm *cm;
	struct node *node;	 /* the host's node in the fabric */
	struct cmserver *server; /* owned */
	struct list clients;	 /* struct fabric_cm_client.link */
	uint32_t client_count;
	struct list queries;	     /* for paths, of all clients */
	struct fabric_groups groups; /* that the clients have joined */
	struct host_port ports[FABRIC_PROTO_PORTS]; /* [0]: port 1 */
	/* When the next cmserver_tick is due, in ns of monotonic_ns;
	 * UINT64_MAX: never. */
	uint64_t due_ns;
};

/* A program with connection management. */
struct fabric_cm_client {
	struct list link; /* in host.clients */
	struct cm_host *host;
	struct fabric_cm_client **place; /* see fabric_cm_open */
	struct cmserver_client *client;	 /* the client in host.server */
	int fd;		      /* this process's end of the socket; owned */
	uint32_t query_count; /* open queries for paths */
	bool is_full; /* the socket is full, and epoll watches it for room */
	/* The IPoIB interface that the program runs, if it runs one. */
	struct fabric_interface interface;
};

/* The connection management of a fabric. */
struct fabric_cm {
	struct fabric *fabric;	  /* borrowed */
	struct fd_store no_store; /* a fabric has no successor */
	struct list hosts;	  /* struct cm_host.link */
	uint32_t host_count;
	struct list active;	/* hosts at which something has happened */
	int epoll;		/* watches the sockets of all clients */
	uint32_t last_id;	/* of the last question to the SA */
	uint64_t due_ns;	/* the earliest due_ns of the hosts */
	struct list interfaces; /* struct fabric_interface, of clients */
	bool has_closed;       /* a descriptor was closed since the last turn */
	struct cm_inbox inbox; /* room for the messages of one receive */
};

/* Returns the host's port that has the GID, and stores its place; NULL: the
 * host has no such port. */
struct host_port *fabric_host_port(struct cm_host *h, const uint8_t gid[16],
				   struct gid_place *place);
/* Returns the index in a port's table of the P_Key for the partition of `pkey`
 * (0: the default partition): the P_Key with full membership or, if the table
 * lacks that, the one with limited membership.  FABRIC_HOST_PKEYS: the port is
 * not in the partition. */
uint16_t fabric_host_pkey_index(const struct fabric_port *port, uint16_t pkey);
/* Sends a question to the subnet administration, from the port with the GID, up
 * to FABRIC_ROUTE_RETRIES + 1 times with pauses of try_ms.  The answer, or the
 * question with a status, comes to fabric_query_take.  Returns 0; -ENETDOWN:
 * the port is not active, or the host has none with the GID; -ETIMEDOUT: the
 * port knows no subnet manager, or has no agent for the SA; or another -errno
 * of fabric_send. */
int fabric_host_ask(struct cm_host *h, const uint8_t gid[16],
		    const uint8_t mad[MAD_BYTES], uint32_t try_ms);

#endif
