/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topologies in the net file format of ibsim, which ibnetdiscover prints, too.
 * A record is a line `Switch|Hca|Ca|Rt PORTS "ID"` and a line
 * `[PORT] "ID"[PORT]` for each cable.  Any other line ends the record, even an
 * empty line, except a line that begins with `#`.  Lines `sysimgguid=` and
 * `vendid=` set values for the next record.  Lines `devid=`, `width=` and
 * `speed=` set values for all records that follow.  A line `switchguid=GUID`
 * sets the GUID of the next switch.  A line `switchguid+N` sets it to N more
 * than the GUID in the last line with `=`.  The GUIDs of later switches count
 * up from there.  `caguid` and `hcaguids` do the same for adapters, and
 * `rtguid` for routers, except that each GUID is 1 + PORTS more than that of
 * the adapter or router before.  Aliases (`@`) and the commands include, do and
 * module of ibsim are refused.  Other lines are ignored.  The file is not
 * trusted: each line is checked.
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
	NET_NODES_MAX = 0xbfff,	  /* the unicast LIDs of a subnet */
	NET_PORTS_MAX = 1 << 20,  /* ports of all nodes together */
	NET_BYTES_MAX = 64 << 20, /* bytes of a file */
	NET_WHY_MAX = 200,	  /* bytes of an error's text, with its NUL */
};

/* NodeType of NodeInfo (IBTA 14.2.5.3). */
enum net_type { NET_CA = 1, NET_SWITCH = 2, NET_ROUTER = 3 };

#define NET_NO_PORT UINT32_MAX

struct net_port {
	uint32_t peer;	    /* index in net.ports, or NET_NO_PORT: no cable */
	uint32_t peer_node; /* index in net.nodes; not valid without a cable */
	uint64_t guid;	    /* 0: an external port of a switch */
	uint32_t peer_at; /* where the ID of the peer's node begins in the file
			   */
	uint16_t lid;	  /* base LID in the file; 0: none */
	uint8_t lmc;	  /* LID mask count in the file */
	uint8_t peer_number; /* the peer's port number; 0: no cable */
	uint8_t peer_bytes;  /* length of the ID of the peer's node */
	/* LinkWidthEnabled: a mask of 1 (1x), 2 (4x), 4 (8x) and 8 (12x). */
	uint8_t width;
	/* LinkSpeedEnabled: a mask of 1 (SDR), 2 (DDR) and 4 (QDR). */
	uint8_t speed;
};

struct net_node {
	char id[NET_NAME_MAX + 1];
	char description[NET_NAME_MAX + 1];
	uint64_t guid;
	uint64_t system_guid;
	uint32_t vendor; /* 24 bits */
	uint32_t first;	 /* index of port 0 in net.ports */
	uint32_t line;	 /* the record's first line in the file, from 1 */
	uint16_t device;
	uint8_t type;		 /* enum net_type */
	uint8_t ports;		 /* number of external ports, 1..254 */
	bool has_enhanced_port0; /* EnhancedPort0 of a switch's SwitchInfo */
};

struct net {
	struct net_node *nodes;
	struct net_port *ports; /* each node has 1 + node.ports of them; port 0
				   of an adapter is unused */
	uint32_t node_count;
	uint32_t port_count;
};

struct net_error {
	uint32_t line;	       /* from 1; 0: no single line is wrong */
	char why[NET_WHY_MAX]; /* a sentence without its full stop */
};

/*
 * Parses the `bytes` bytes at `text` into *net, which need not be initialised.
 * Returns 0, and the caller frees *net by net_free.  -EINVAL: the text is
 * wrong, and *error says where and why.  -ENOMEM: no memory is left.  After an
 * error *net is empty.
 */
int net_parse(const char *text, size_t bytes, struct net *net,
	      struct net_error *error);
/* Frees what net_parse allocated, and makes *net empty. */
void net_free(struct net *net);

#endif
