/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structures of an emulated subnet, for the files of this folder.  One
 * thread uses a fabric; there is no lock.
 */
#ifndef FABRIC_INSIDE_H
#define FABRIC_INSIDE_H

#include "fabric/deadlock.h"
#include "fabric/fabric.h"
#include "fabric/net.h"
#include "fabric/packet_memory.h"
#include "hdr/mad.h"
#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PORT_PKEYS = 64, /* entries of a port's P_Key table */
	PORT_GUIDS = FABRIC_GUIDS,
	PORT_INFO_BYTES = 64,
	SWITCH_INFO_BYTES = 20,
	LFT_CAP = 0xc000,    /* LIDs in a linear forwarding table */
	MFT_CAP = 1024,	     /* MLIDs in a multicast forwarding table */
	MFT_MASK_PORTS = 16, /* ports in a mask of a multicast table */
	MFT_BLOCK = 32,	     /* MLIDs in a block, which one MAD carries */
	MLID_FIRST = 0xc000,
	LID_PERMISSIVE = 0xffff,
	VLARB_BLOCK = 64, /* bytes: 32 pairs of VL and weight */
	/* Blocks of the low-priority entries 1 to 32 and 33 to 64, then of the
	 * high-priority entries 1 to 32 and 33 to 64. */
	VLARB_BLOCKS = 4,
	SLVL_BYTES = 8,
	LANES = 8, /* data VLs of a port */
	/* If most bytes of a packet are lent (payload.lender), payload.data has
	 * only so many bytes, the packet's first.  The fabric reads no header
	 * field behind these bytes. */
	PAYLOAD_HEAD = 128,
	HOPS_MAX = 64,	   /* a packet with more hops is dropped */
	PACKET_WORDS = 72, /* LRH, BTH, DETH, MAD and ICRC in 32-bit words */
	CLASS_SUBN_LID = 0x01,
	CLASS_SUBN_DIRECTED = 0x81,
	CLASS_SA = 0x03,
	CLASS_PERF = 0x04,
	METHOD_GET = 1,
	METHOD_SET = 2,
	METHOD_TRAP = 5,
	METHOD_TRAP_REPRESS = 7,
	ATTR_CLASS_PORT_INFO = 0x01,
	ATTR_NOTICE = 0x02,
	ATTR_SM_INFO = 0x20,
	STATUS_BAD_VERSION = 0x04,
	STATUS_METHOD = 0x08,
	STATUS_ATTRIBUTE = 0x0c,
	STATUS_VALUE = 0x1c,
	STATUS_DIRECTION = 0x8000, /* bit D of a directed-route SMP */
};

/* Is mgmt_class a class of subnet management, whose datagrams go to QP0? */
static inline bool inside_is_subnet(uint8_t mgmt_class)
{
	return mgmt_class == CLASS_SUBN_LID ||
	       mgmt_class == CLASS_SUBN_DIRECTED;
}

/* PortState and PortPhysicalState of PortInfo (IBTA 14.2.5.6). */
enum { STATE_DOWN = 1, STATE_INIT = 2, STATE_ARMED = 3, STATE_ACTIVE = 4 };
enum { PHYS_SLEEP = 1, PHYS_POLLING = 2, PHYS_DISABLED = 3, PHYS_LINK_UP = 5 };

/* Counters of a port.  tx_words and rx_words count 32-bit words, the others
 * packets or events.  Each has 64 bits here, as in PortCountersExtended; pma.c
 * limits a counter to its width in the attribute that a request reads. */
struct counters {
	uint64_t tx_words;
	uint64_t rx_words;
	uint64_t tx_packets;
	uint64_t rx_packets;
	uint64_t tx_unicast;
	uint64_t rx_unicast;
	uint64_t tx_multicast;
	uint64_t rx_multicast;
	uint64_t link_downed;
	uint64_t rx_errors;	  /* nothing counts it; a Set may write it */
	uint64_t rx_relay_errors; /* a switch had no route for the packet */
	/* Packets that the port could not send.  Reasons at the port: the link
	 * was not active, the VL was stalled, no copy for a group could be
	 * made, or no memory was left.  Reasons at the packet: it had too many
	 * hops (HOPS_MAX), an SL without a VL, or more bytes than the MTU; it
	 * waited for too long (HOQLife, LifeTimeValue); or its receiver did not
	 * fetch it in time. */
	uint64_t tx_discards;
	uint64_t tx_constraint; /* P_Key refused at a switch's egress port */
	uint64_t rx_constraint; /* P_Key refused at a switch's ingress port */
};

struct port {
	struct node *node;
	struct port *peer; /* at the other end of the cable; NULL: no cable */
	struct list ends; /* struct end.of_port: ends that have the port open */
	struct list data_ends; /* struct data_end.of_port */
	struct list traps;     /* struct trap.of_port */
	uint8_t number;
	uint8_t state;		       /* STATE_* */
	uint8_t phys_state;	       /* PHYS_* */
	uint8_t info[PORT_INFO_BYTES]; /* PortInfo without the two states */
	uint16_t pkeys[PORT_PKEYS];    /* in host order; 0: an empty entry */
	uint8_t vlarb[VLARB_BLOCKS][VLARB_BLOCK]; /* VLArbitrationTable */
	uint8_t (*slvl)[SLVL_BYTES]; /* a row for each ingress port of a switch,
					one row for an adapter */
	uint64_t *guids;	     /* GUID table; NULL: a port of a switch */
	uint64_t mkey_expires_ms;    /* 0: no M_Key lease is running */
	struct counters counters;
	/* Buffers and queues of the data VLs (lane.h); NULL: no packet of a
	 * data end has passed the port. */
	struct lanes *lanes;
};

struct node {
	struct fabric *fabric;
	char id[NET_NAME_MAX + 1];
	char description[NET_NAME_MAX + 1];
	uint64_t guid;
	uint64_t system_guid;
	uint32_t vendor;
	uint16_t device;
	uint8_t type;	    /* enum net_type */
	uint8_t port_count; /* external ports */
	/* Ports 0 to port_count, in fabric.ports; port 0 of an adapter is
	 * unused. */
	struct port *ports;
	uint8_t switch_info[SWITCH_INFO_BYTES];
	/* The forwarding tables of a switch; NULL for other nodes.  lft: an
	 * egress port for each of LFT_CAP LIDs.  mft: for each of MFT_CAP MLIDs
	 * mft_columns masks, each of MFT_MASK_PORTS ports. */
	uint8_t *lft;
	uint16_t *mft;
	uint32_t mft_columns;
	uint32_t held; /* groups of processes that have this host */
};

/* The bytes of a data end's packet, from LRH to VCRC, which copies of a
 * multicast packet share. */
struct payload {
	/* In data_ends.lent, if `lender` is not NULL. */
	struct list lent;
	/* Where the packet lies in the memory of data_lend's caller; `data` has
	 * a copy of its first PAYLOAD_HEAD bytes alone.  NULL: `data` has all
	 * bytes. */
	const uint8_t *lender;
	uint32_t refs;	/* packets with these bytes */
	uint32_t bytes; /* the packet's length */
	/* data_end_count_lost has counted a packet with these bytes. */
	bool is_lost;
	/* `data` has room for LRH_FRAME_MAX bytes, and its memory is that of
	 * fabric.memory.payloads. */
	bool is_large;
	uint8_t data[];
};

/* The sender of a data end's packet that has not left the sender's port. */
struct origin {
	struct list list;     /* in data_end.unsent */
	struct data_end *end; /* NULL: the packet has left, or end has closed */
	/* The end has closed, and data_ends.orphans counts the packet. */
	bool is_orphan;
	uint8_t vl; /* the index in data_end.unsent_on that counts the packet */
};

/* A packet between its sender and its destination: a management datagram, or
 * the packet of a data end. */
struct packet {
	/* In fabric.moving, lane.queue or data_end.inbox. */
	struct list list;
	struct port *at; /* the port where the packet is */
	struct port *in; /* the ingress port; NULL: the packet starts at `at` */
	uint16_t slid, dlid;
	uint8_t sl;
	uint8_t hops; /* the links that the packet has crossed or waits for */
	uint32_t src_qp; /* 0 also if the packet has no DETH */
	uint32_t dest_qp;
	uint32_t qkey; /* only if the packet has a DETH */
	bool has_grh;  /* the packet has a GRH */
	/* Fields of the GRH; only of a management datagram. */
	uint8_t hop_limit, traffic_class;
	uint32_t flow_label;
	/* The GIDs of the GRH; only if has_grh. */
	uint8_t sgid[16], dgid[16];
	struct payload *payload; /* NULL: a management datagram */
	struct origin origin;
	/* The input buffer in which the packet is, a lane of the port `in`;
	 * NULL: the packet has not crossed a link, or is a management datagram.
	 */
	struct lane *room;
	uint32_t blocks; /* length in blocks (LANE_BLOCK) */
	/* When the packet entered the queue or the inbox in which it is. */
	uint64_t came_ms;
	/* The longest time that the packet stays in the inbox of a data end
	 * (HOQLife), counted from came_ms or from the end's last fetch,
	 * whichever is later; FABRIC_NEVER: there is no limit. */
	uint64_t life_ms;
	/* P_Key of the BTH; 0: a management datagram with the default P_Key. */
	uint16_t pkey;
	uint8_t vl;    /* VL of a data end's packet on the link */
	uint8_t mad[]; /* MAD_BYTES; used by management datagrams alone */
};

/* The data ends of a fabric. */
struct data_ends {
	struct list all;     /* struct data_end.of_fabric */
	struct list ready;   /* struct data_end.ready */
	struct list resumed; /* struct data_end.resumed */
	struct list waiting; /* struct lanes.waiting */
	struct list woken;   /* struct lanes.woken: to serve now */
	struct list tired;   /* struct lanes.woken: to serve in the next turn */
	struct list lent;    /* struct payload.lent */
	uint64_t turn;	     /* number of the current fabric_turn */
	/* The deadlock that the last search has found, if any. */
	struct deadlock deadlock;
	/* Room of an input buffer, in blocks (LANE_BLOCKS). */
	uint32_t buffer_blocks;
	/* Blocks that a link carries in a turn at most (LANE_TURN). */
	uint32_t turn_blocks;
	uint32_t count; /* how many data ends `all` has */
	/* Packets that have not left the ports of senders that have closed. */
	uint32_t orphans;
	/* How many multicast packets of data ends are in the fabric, copies
	 * included. */
	uint32_t multicasts;
};

struct fabric {
	struct node *nodes;
	struct port *ports; /* of all nodes */
	uint32_t node_count;
	uint32_t next_tid; /* tid_high of the agent that registered last */
	uint32_t end_count;
	struct list ends;   /* struct end.of_fabric */
	struct list ready;  /* struct end.ready: ends with messages to fetch */
	struct list moving; /* struct packet.list */
	struct data_ends data;
	uint32_t moving_count;
	struct {
		struct packet_memory packets;  /* struct packet with a MAD */
		struct packet_memory payloads; /* payload.is_large */
	} memory;
	struct list traps;    /* struct trap.sending */
	uint64_t trap_due_ms; /* when the first of these traps is due */
	uint64_t trap_id;     /* the transaction ID of the last trap */
	/* Counts the changes of states and tables: all that may change an
	 * answer of reach_find, and some that cannot. */
	uint32_t changes;
	uint64_t now_ms;
	/* The arguments of fabric_watch; seen NULL: nobody watches. */
	void (*seen)(void *arg, const uint8_t *p, size_t bytes);
	void *seen_arg;
	/* The arguments of fabric_watch_ports; changed NULL: nobody watches. */
	void (*changed)(void *arg, const struct node *node, uint32_t port,
			uint32_t changes);
	void *changed_arg;
};

static inline bool node_is_switch(const struct node *node)
{
	return node->type == NET_SWITCH;
}

/* Returns the port whose PortInfo has the node's LID and M_Key for a packet at
 * `port`: port 0 of a switch, or `port` itself of an adapter or router. */
static inline struct port *port_managed(struct port *port)
{
	return node_is_switch(port->node) ? &port->node->ports[0] : port;
}

/* Returns the GUID at an index of a port's GUID table; 0: there is none. */
static inline uint64_t port_guid(const struct port *port, uint32_t index)
{
	if (port->guids)
		return index < PORT_GUIDS ? port->guids[index] : 0;
	return index ? 0 : port->node->guid;
}

/* Is `number` the number of a port that programs can open: port 0 of a switch,
 * or a port of an adapter or router? */
static inline bool node_has_port(const struct node *node, uint32_t number)
{
	return node_is_switch(node) ? !number
				    : number && number <= node->port_count;
}

/* packet.c */
/* Allocates a management datagram at the port `at`, with all other members 0;
 * NULL: no memory is left, or too many packets move.  The caller owns the
 * packet. */
struct packet *packet_new(struct fabric *f, struct port *at);
/* As packet_new, but the packet is for a payload, and its MAD is not set. */
struct packet *packet_new_data(struct fabric *f, struct port *at);
/* Gives a packet to the fabric, which moves it in fabric_turn and frees it. */
void packet_inject(struct packet *packet);
/* As packet_inject, but the packet moves before all others. */
void packet_inject_first(struct packet *packet);
/* Frees a packet, with its reference to a payload, its room in an input buffer
 * and its place in the counts of its sender. */
void packet_drop(struct packet *packet);
/* Counts a packet, which has a payload, against the data end that sends it on
 * the VL `vl`. */
void packet_belong(struct packet *packet, struct data_end *end, uint8_t vl);
/* The packet leaves its sender's port, and counts against the sender no more.
 */
void packet_depart(struct packet *packet);
/* Returns a copy of a packet, with the same payload; NULL: no memory is left,
 * too many packets move, or the packet has a payload and the fabric has
 * DATA_MULTICASTS multicast packets. */
struct packet *packet_copy(const struct packet *packet);
/* Gives a packet a payload that no other packet has: a copy, unless the packet
 * is the only one with its payload.  False: no memory is left, and the packet
 * has its old payload. */
bool packet_own_payload(struct packet *packet);
/* Returns a payload with one reference and a copy of n bytes, at most
 * LRH_FRAME_MAX; NULL: no memory is left.  packet_release ends the reference.
 */
struct payload *packet_payload(struct fabric *f, const uint8_t *bytes,
			       size_t n);
/* As packet_payload, but copies only the first PAYLOAD_HEAD bytes, unless n is
 * small: the payload uses the other bytes at `bytes` until packet_settle. */
struct payload *packet_payload_lent(struct fabric *f, const uint8_t *bytes,
				    size_t n);
/* Copies the bytes of the payload that are still lent. */
void packet_settle(struct payload *payload);
/* Copies all bytes of the payload to `to`. */
void packet_copy_bytes(const struct payload *payload, uint8_t *to);
/* Drops one reference to a payload, which is freed with the last one. */
void packet_release(struct fabric *f, struct payload *payload);

/* link.c */
/* Sets PortPhysicalState of a port.  The link goes up (INIT) if both ends of
 * the cable are in Polling, and down otherwise. */
void link_set_phys(struct port *port, uint8_t phys_state);
/* Sets PortState of a port.  If a switch's port goes down or comes up, sets
 * PortStateChange of SwitchInfo, and sends a trap to the subnet manager. */
void link_set_state(struct port *port, uint8_t state);

#endif
