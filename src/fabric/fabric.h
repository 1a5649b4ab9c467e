/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An emulated InfiniBand subnet: channel adapters, switches and links, their
 * management agents, and ends.  A struct end is a port that a program has open;
 * it behaves as the kernel's interface for management datagrams (ib_umad).
 *
 * Sans-IO: bytes and the time in milliseconds are arguments.  The caller calls
 * fabric_turn after each input and at fabric_deadline.  Then it fetches the
 * messages of the ends that fabric_ready returns.  One thread uses a fabric;
 * there is no lock.  Input from programs is not trusted: all values are
 * checked, and the memory that an end can make the fabric allocate is limited.
 */
#ifndef FABRIC_FABRIC_H
#define FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct end;
struct fabric;
struct net;
struct node;

#define FABRIC_NEVER UINT64_MAX

enum {
	FABRIC_UMAD_BYTES = 64,	    /* length of the header before a MAD */
	FABRIC_MAD_MAX = 384 << 10, /* most bytes of a MAD sent by RMPP */
	FABRIC_AGENTS = 32,	    /* most agents of an end */
	FABRIC_ENDS = 4096,	    /* most ends of a fabric */
	FABRIC_GUIDS = 32,	    /* GUIDs of an adapter's port (GUIDCap) */
};

/* Makes a fabric of a topology.  The links are up, and the ports at their ends
 * are in INIT until a subnet manager configures them.  The fabric does not
 * refer to *net afterwards.  The caller frees the fabric by fabric_free.  NULL:
 * no memory is left. */
struct fabric *fabric_new(const struct net *net);
/* Frees the fabric with its ends and its data ends (data.h). */
void fabric_free(struct fabric *f);

/* Sets the current time, in ms.  If a later input starts a timer, the timer
 * starts at this time. */
void fabric_set_time(struct fabric *f, uint64_t now_ms);
/* Sets the time, moves each packet until it arrives, is dropped or has to wait
 * in a queue, and runs the timers that are due.  now_ms never decreases. */
void fabric_turn(struct fabric *f, uint64_t now_ms);
/* Returns the time at which fabric_turn has to be called, in ms; FABRIC_NEVER:
 * not before the next input. */
uint64_t fabric_deadline(const struct fabric *f);

/* From now on, fabric_turn calls `seen` with `arg` for each packet that leaves
 * its first port.  The bytes at p, from LRH to VCRC, are valid during the call.
 * seen NULL: ends these calls. */
void fabric_watch(struct fabric *f,
		  void (*seen)(void *arg, const uint8_t *p, size_t bytes),
		  void *arg);

/* From now on, the fabric calls `changed` with `arg` when a port of a node has
 * changed: `changes` is a set of enum data_change (data.h), and is not 0.  The
 * function may read the port (fabric_show_port), which then has its new values,
 * but must not change the fabric.  changed NULL: ends these calls. */
void fabric_watch_ports(struct fabric *f,
			void (*changed)(void *arg, const struct node *node,
					uint32_t port, uint32_t changes),
			void *arg);

/* Finds the node with this ID or, if there is none, with this description;
 * NULL: there is no such node. */
struct node *fabric_find(struct fabric *f, const char *name);
/* Returns the node at this index, in the order of the net file; NULL: there are
 * no more nodes. */
struct node *fabric_node(struct fabric *f, uint32_t index);
/* Makes a node the host of a group of processes, and returns the node: the one
 * that fabric_find finds, or for the name "" the first adapter that is no
 * group's host.  NULL: there is no such node.  The caller ends each fabric_take
 * by one fabric_release. */
struct node *fabric_take(struct fabric *f, const char *name);
/* Ends one fabric_take of the node. */
void fabric_release(struct node *node);
/* Returns how many groups of processes have the node as their host. */
uint32_t fabric_groups(const struct node *node);

/* The attributes of a node that libibumad reports (umad_ca_t), in host order.
 */
struct fabric_ca {
	uint64_t node_guid;
	uint64_t system_guid;
	uint32_t vendor;   /* VendorID, 24 bits */
	uint16_t device;   /* DeviceID */
	uint8_t node_type; /* 1 adapter, 2 switch, 3 router */
	/* The ports that a program can open: of a switch, port 0 alone. */
	uint8_t first_port;
	uint8_t last_port;
};
/* The attributes of a port that libibumad (umad_port_t) and libibverbs report,
 * in host order. */
struct fabric_port {
	/* The GUID table; 0: an entry without a GUID.  guids[0] is the port's
	 * own GUID. */
	uint64_t guids[FABRIC_GUIDS];
	uint64_t gid_prefix;   /* GidPrefix */
	uint32_t capabilities; /* CapabilityMask */
	uint16_t lid;	       /* base LID; 0: none */
	uint16_t sm_lid;       /* MasterSMLID; 0: none */
	uint16_t pkeys[64];    /* the P_Key table; 0: an empty entry */
	uint8_t lmc;	       /* LID mask count */
	uint8_t sm_sl;	       /* MasterSMSL */
	uint8_t state;	       /* PortState (IBTA 14.2.5.6) */
	uint8_t phys_state;    /* PortPhysicalState (IBTA 14.2.5.6) */
	uint8_t width;	       /* LinkWidthActive */
	uint8_t speed;	       /* LinkSpeedActive */
	uint8_t rate;	       /* Gbit/s, rounded down */
	uint8_t mtu;	       /* NeighborMTU: 1 to 5, for 256 to 4096 bytes */
	uint8_t max_mtu;       /* MTUCap: 1 to 5, for 256 to 4096 bytes */
	uint8_t vl_cap;	 /* VLCap: 1 to 5, for 1, 2, 4, 8 or 15 data VLs */
	uint8_t timeout; /* SubnetTimeOut: n is 4.096 us times 2 to the n */
};
/* Returns the node's ID in the net file.  The fabric owns the string. */
const char *fabric_id(const struct node *node);
/* Returns the node's NodeDescription.  The fabric owns the string. */
const char *fabric_description(const struct node *node);
/* Stores the node's attributes in *ca. */
void fabric_show_ca(const struct node *node, struct fabric_ca *ca);
/* Stores the port's attributes in *shown.  Returns 0, or -ENODEV: programs
 * cannot open that port. */
int fabric_show_port(const struct node *node, uint32_t port,
		     struct fabric_port *shown);

/*
 * Opens a port for a program, and returns the end.  fabric_owner returns the
 * pointer `owner`.  The caller closes the end by fabric_close.  NULL: *err is
 * -ENODEV (programs cannot open that port), -EMFILE (FABRIC_ENDS are open) or
 * -ENOMEM.
 */
struct end *fabric_open(struct node *node, uint32_t port, void *owner,
			int *err);
/* Frees the end with its agents, requests and messages. */
void fabric_close(struct end *end);
/* Returns the pointer `owner` of fabric_open. */
void *fabric_owner(const struct end *end);

/* Is mgmt_class one of the vendors' classes whose datagrams have an OUI? */
static inline bool fabric_has_oui(int mgmt_class)
{
	return mgmt_class >= 0x30 && mgmt_class <= 0x4f;
}

/* Do datagrams of the class have the header of RMPP?  The classes are those of
 * the kernel (ib_is_mad_class_rmpp): SubnAdm, DevMgt, DevAdm, BIS, and the
 * vendors' classes with an OUI. */
static inline bool fabric_has_rmpp(int mgmt_class)
{
	return mgmt_class == 0x03 || mgmt_class == 0x06 || mgmt_class == 0x10 ||
	       mgmt_class == 0x12 || fabric_has_oui(mgmt_class);
}

/* The requests that a program's agent takes. */
struct fabric_agent {
	/* Bit M % 64 of methods[M / 64]: the agent takes requests of method M.
	 */
	uint64_t methods[2];
	/* The OUI, 24 bits; if fabric_has_oui(mgmt_class), it is compared and
	 * must not be 0. */
	uint32_t oui;
	uint8_t mgmt_class;    /* MgmtClass: 0 to 0x4f, or 0x81 */
	uint8_t class_version; /* ClassVersion of the class: 0 to 0x82 */
	/* 1: the fabric sends and receives the agent's long MADs by RMPP, which
	 * needs fabric_has_rmpp(mgmt_class) or mgmt_class 0.  0: each datagram
	 * is one message, and the agent may handle RMPP itself. */
	uint8_t rmpp_version;
};
/* Registers an agent.  Returns the agent's number, 0 to FABRIC_AGENTS - 1;
 * -EINVAL: as with the kernel, a member of *agent is wrong, or an agent at the
 * port already takes some of these requests; -ENOMEM: the end has FABRIC_AGENTS
 * agents. */
int fabric_register(struct end *end, const struct fabric_agent *agent);
/* Ends an agent, and drops its requests that wait for a response.  Returns 0,
 * or -EINVAL: there is no such agent. */
int fabric_unregister(struct end *end, uint32_t agent);

/*
 * Sends a message of `bytes` bytes: struct ib_user_mad of the kernel's ABI 5
 * (FABRIC_UMAD_BYTES), then a MAD.  Returns 0; -EINVAL: the length or the agent
 * is wrong; -ENOBUFS: too many requests of the end wait for a response, or too
 * many of its RMPP transfers have not ended; -ENOMEM: no memory is left, or too
 * many packets move in the fabric.  If only its transfer or its packet has no
 * room, a request with a timeout counts as lost instead, and 0 is returned: it
 * is sent again after its timeout or, without retries or if it is of RMPP,
 * times out at once.
 */
int fabric_send(struct end *end, const uint8_t *umad, size_t bytes);
/* As fabric_send, but leaves the message's transaction ID as it is: for MADs
 * that on a real host the kernel sends.  The timeout in a request must be 0,
 * since no response is awaited; with another timeout, returns -EINVAL. */
int fabric_send_as_is(struct end *end, const uint8_t *umad, size_t bytes);
/* Returns an end that is not paused and has a message to fetch; NULL: there is
 * none. */
struct end *fabric_ready(struct fabric *f);
/* Returns the oldest message of an end, in the form that fabric_send takes, and
 * sets *bytes to its length; NULL: there is no message.  The message is valid
 * until fabric_fetched or fabric_close. */
const uint8_t *fabric_fetch(struct end *end, size_t *bytes);
/* Frees the oldest message of an end. */
void fabric_fetched(struct end *end);
/* Pauses an end whose program does not read its messages: fabric_ready does not
 * return the end until fabric_resume. */
void fabric_pause(struct end *end);
/* Ends the pause: fabric_ready may return the end again. */
void fabric_resume(struct end *end);

#endif
