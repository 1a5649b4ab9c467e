/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cables of a simulated subnet, and its subnet manager.  The seed draws the
 * switches and the cables.  Cables are cut and repaired.  Some time after each
 * change the subnet manager makes those ports ACTIVE that have a link, and
 * computes all forwarding tables anew.  For a while, a port of a host, or the
 * port of the switch at the same cable, has another P_Key than the other ports,
 * or none.  This subnet manager exists in the simulator alone, and sets the
 * fabric's tables without datagrams.
 */
#ifndef SIM_CABLES_H
#define SIM_CABLES_H

#include "fabric/inside.h"
#include "sim/world.h"

#define CABLES_SWITCHES 5
/* The switches come first, and then the hosts. */
#define CABLES_NODES (CABLES_SWITCHES + WORLD_HOSTS)
#define CABLES_PORTS 2 /* of a host */
/* The most cables, and the most LIDs. */
#define CABLES_MOST	 (2 * CABLES_SWITCHES + CABLES_PORTS * WORLD_HOSTS)
#define CABLES_LIDS	 (CABLES_PORTS * WORLD_HOSTS)
#define CABLES_FIRST_LID 16 /* of port 1 of host 0; the others follow */

/* A cable between port number[0] of the node with index node[0], and port
 * number[1] of the node with index node[1]. */
struct cable {
	uint32_t node[2];
	uint8_t number[2];
	/* When the cable is repaired; UINT64_MAX: the cable is not cut. */
	uint64_t repair_ns;
	/* When the ports at both ends have the P_Key of all ports again;
	 * UINT64_MAX: they have it. */
	uint64_t rejoin_ns;
	bool is_in_tree; /* in the tree that routes use if cables.is_lossless */
};

/* The cables of a world, and the nodes at their ends. */
struct cables {
	struct fabric *fabric; /* owned */
	uint32_t switches;     /* how many of the nodes are switches */
	uint32_t nodes;	       /* switches and hosts */
	struct node *node[CABLES_NODES]; /* of the fabric; by index */
	struct cable list[CABLES_MOST];
	uint32_t count;	   /* entries of list */
	uint64_t sweep_ns; /* when the subnet manager runs; UINT64_MAX: never */
	/* Routes use the cables of a tree alone, and no packet is discarded for
	 * its age.  If false, routes may have credit loops, and packets that
	 * wait too long are discarded. */
	bool is_lossless;
	bool has_parted; /* a P_Key was changed at least once */
};

/* Draws the cables between the hosts of w, and makes the fabric with all ports
 * ACTIVE and all routes set. */
void cables_init(struct world *w, struct cables *c);
/* Frees the fabric. */
void cables_fini(struct cables *c);
/* Returns port `number`, 1 or 2, of a host. */
struct port *cables_port(const struct cables *c, uint32_t host,
			 uint32_t number);
/* Returns the LID of port `number`, 1 or 2, of a host. */
uint16_t cables_lid(uint32_t host, uint32_t number);
/* Cuts a cable that the seed draws, for a while.  False: the cable is cut
 * already. */
bool cables_cut(struct world *w, struct cables *c);
/* Draws a port: a port of a host, or the port of the switch at the same cable.
 * Gives that port another P_Key, or none, for a while.  False: a port at that
 * cable has another P_Key, or none, already. */
bool cables_part(struct world *w, struct cables *c);
/* Returns the world's time at which cables_turn is due; UINT64_MAX: never. */
uint64_t cables_next(const struct cables *c);
/* Repairs cables, restores P_Keys, and runs the subnet manager, if it is time.
 * Returns whether something has changed. */
bool cables_turn(struct world *w, struct cables *c);

#endif
