/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies in the net file format of ibsim, which is also what ibnetdiscover
 * prints.  A record is a line `Switch|Hca|Ca|Rt PORTS "ID"` and a line
 * `[PORT] "ID"[PORT]` for each cable; an empty line or any other line ends the
 * record.  Lines `switchguid=`, `caguid=`, `hcaguids=`, `rtguid=`,
 * `sysimgguid=`, `vendid=`, `devid=`, `width=`, `speed=` set values of the
 * records that follow.  A file is input from outside: each line is checked.
 *
 * Pure: no file is opened here.  The caller owns the struct net.
 */
#ifndef FABRIC_NET_H
#define FABRIC_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NET_NAME_MAX = 64,	  /* bytes of an ID or description */
	NET_NODES_MAX = 0xbfff,	  /* as many as a subnet has unicast LIDs */
	NET_PORTS_MAX = 1 << 20,  /* ports of all nodes together */
	NET_BYTES_MAX = 64 << 20, /* of a file */
	NET_WHY_MAX = 200,
};

/* NodeType of NodeInfo (IBTA 14.2.5.3). */
enum net_type { NET_CA = 1, NET_SWITCH = 2, NET_ROUTER = 3 };

#define NET_NO_PORT UINT32_MAX

struct net_port {
	uint32_t peer;	    /* index in net.ports, or NET_NO_PORT: no cable */
	uint32_t peer_node; /* index in net.nodes; valid with a peer */
	uint64_t guid;	    /* 0 for the external ports of a switch */
	uint32_t peer_at;   /* where the ID of the peer's node is in the text */
	uint16_t lid;	    /* base LID at the start; 0: none */
	uint8_t lmc;	    /* LID mask count at the start */
	uint8_t peer_number; /* the peer's port number; 0: no cable */
	uint8_t peer_bytes;  /* length of the ID of the peer's node */
	uint8_t width;	     /* LinkWidthEnabled: 1 1x, 2 4x, 4 8x, 8 12x */
	uint8_t speed;	     /* LinkSpeedEnabled: 1 SDR, 2 DDR, 4 QDR */
};

struct net_node {
	char id[NET_NAME_MAX + 1];
	char description[NET_NAME_MAX + 1];
	uint64_t guid;
	uint64_t system_guid;
	uint32_t vendor; /* 24 bits */
	uint32_t first;	 /* index of port 0 in net.ports */
	uint32_t line;	 /* of the file, where the record begins */
	uint16_t device;
	uint8_t type;		 /* enum net_type */
	uint8_t ports;		 /* number of external ports, 1..254 */
	bool has_enhanced_port0; /* a switch whose port 0 is like a CA's port */
};

struct net {
	struct net_node *nodes;
	struct net_port *ports; /* each node has 1 + node.ports of them; port 0
				   of an adapter is unused */
	uint32_t node_count;
	uint32_t port_count;
};

struct net_error {
	uint32_t line;	       /* 0: the fault is in no single line */
	char why[NET_WHY_MAX]; /* a sentence without its full stop */
};

/*
 * Parses `bytes` of text into *net, which need not be initialised.  Returns 0;
 * -EINVAL if the text is wrong, and *error says where and why; -ENOMEM.  After
 * an error *net is empty.
 */
int net_parse(const char *text, size_t bytes, struct net *net,
	      struct net_error *error);
/* Frees what net_parse allocated; *net is empty then. */
void net_free(struct net *net);
/* Returns the index of the node with that ID, or else with that description;
 * -ENOENT if there is none. */
int net_find(const struct net *net, const char *name);

#endif
