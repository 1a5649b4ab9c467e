/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An emulated InfiniBand subnet: channel adapters, switches and links, their
 * management agents, and the ports that programs have open (struct end), with
 * the meaning of the kernel's interface for management datagrams.
 *
 * Sans-IO: bytes and time in milliseconds come in as arguments.  The caller
 * calls fabric_turn after each input and at fabric_deadline, then fetches the
 * messages of the ends that fabric_ready returns.  One thread; no lock.  All
 * input of an end is hostile: it is checked, and quotas bound what one end can
 * make the fabric hold.
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
	FABRIC_UMAD_BYTES = 64,	    /* the header in front of a MAD */
	FABRIC_MAD_MAX = 384 << 10, /* bytes of a MAD that RMPP joins */
	FABRIC_AGENTS = 32,	    /* agents of an end */
	FABRIC_ENDS = 4096,	    /* ends of a fabric */
};

/* Makes a subnet of a parsed file, whose links are up and whose ports wait for
 * a subnet manager (INIT).  *net may be freed then.  NULL: no memory. */
struct fabric *fabric_new(const struct net *net);
/* Frees the fabric with its ends. */
void fabric_free(struct fabric *f);

/* Sets the time from which the timers of the inputs that follow run. */
void fabric_set_time(struct fabric *f, uint64_t now_ms);
/* Moves packets until none moves, and does what is due at now_ms, which never
 * decreases. */
void fabric_turn(struct fabric *f, uint64_t now_ms);
/* Returns when fabric_turn has to be called, or FABRIC_NEVER. */
uint64_t fabric_deadline(const struct fabric *f);

/* Finds a host by ID or description; NULL: there is none. */
struct node *fabric_find(struct fabric *f, const char *name);
/* Finds a node by its place in the file; NULL: behind the last. */
struct node *fabric_node(struct fabric *f, uint32_t index);
/* Takes a host for a group of processes.  name "": the first adapter that no
 * group has taken.  NULL: there is none.  fabric_release ends it. */
struct node *fabric_take(struct fabric *f, const char *name);
void fabric_release(struct node *node);
/* Returns how many groups have the node as their host. */
uint32_t fabric_groups(const struct node *node);

/* What libibumad says of an adapter and its ports. */
struct fabric_ca {
	uint64_t node_guid;
	uint64_t system_guid;
	uint32_t vendor;
	uint16_t device;
	uint8_t node_type;  /* 1 adapter, 2 switch, 3 router */
	uint8_t first_port; /* 0 for a switch, which has port 0 alone */
	uint8_t last_port;
};
struct fabric_port {
	uint64_t guid;
	uint64_t gid_prefix;
	uint32_t capabilities;
	uint16_t lid;
	uint16_t sm_lid;
	uint16_t pkeys[64];
	uint8_t lmc;
	uint8_t sm_sl;
	uint8_t state;
	uint8_t phys_state;
	uint8_t width; /* LinkWidthActive */
	uint8_t speed; /* LinkSpeedActive */
	uint8_t rate;  /* Gbit/s */
};
const char *fabric_id(const struct node *node);
const char *fabric_description(const struct node *node);
void fabric_show_ca(const struct node *node, struct fabric_ca *ca);
/* Returns 0, or -ENODEV: programs of this node have no such port. */
int fabric_show_port(const struct node *node, uint32_t port,
		     struct fabric_port *shown);

/*
 * Opens a port for a program.  The pointer `owner` comes back from
 * fabric_owner.  Returns NULL with *err -ENODEV (no such port), -EMFILE
 * (FABRIC_ENDS are open) or -ENOMEM.
 */
struct end *fabric_open(struct node *node, uint32_t port, void *owner,
			int *err);
void fabric_close(struct end *end);
void *fabric_owner(const struct end *end);

struct fabric_agent {
	uint64_t methods[2]; /* bit M: the agent takes requests of method M */
	uint32_t oui;	     /* of a class 0x30 to 0x4f */
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t rmpp_version; /* 1: the fabric does RMPP for the agent */
};
/* Registers an agent.  Returns its number; -EINVAL: bad values; -EPERM: another
 * agent takes these requests; -ENOMEM: FABRIC_AGENTS are registered. */
int fabric_register(struct end *end, const struct fabric_agent *agent);
/* Returns 0, or -EINVAL: there is no such agent. */
int fabric_unregister(struct end *end, uint32_t agent);

/*
 * Sends a message: struct ib_user_mad of the kernel's ABI 5 (64 bytes), then a
 * MAD.  Returns 0; -EINVAL: the message is wrong; -ENOBUFS: the end has too
 * many requests open; -ENOMEM.
 */
int fabric_send(struct end *end, const uint8_t *umad, size_t bytes);
/* Returns an end that has a message, or NULL. */
struct end *fabric_ready(struct fabric *f);
/* Returns the first message of an end and sets *bytes; NULL: there is none.
 * The message stays until fabric_fetched. */
const uint8_t *fabric_fetch(struct end *end, size_t *bytes);
void fabric_fetched(struct end *end);
/* Takes the end off the list of fabric_ready until fabric_resume: its program
 * does not read. */
void fabric_pause(struct end *end);
void fabric_resume(struct end *end);

#endif
