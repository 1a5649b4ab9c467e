/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GIDs of the ports of adapters and routers.  These functions find the port
 * and the LID of a GID, and the first GID of a LID, by a search of all nodes.
 * A GID is the port's GidPrefix and a GUID of the port's table.
 */
#ifndef FABRIC_GID_H
#define FABRIC_GID_H

#include <stdbool.h>
#include <stdint.h>

struct fabric;
struct node;
struct port;

/* The port that has a GID. */
struct gid_place {
	struct node *node;
	uint32_t port;	/* the port's number, from 1 on */
	uint32_t index; /* of the GID in the port's table */
	uint16_t lid;	/* the port's base LID; 0: it has none yet */
};

/* Returns the index of the GID in the port's table; 0 also if the port does not
 * have the GID. */
uint32_t gid_index(const struct port *port, const uint8_t gid[16]);
/* Finds the port that has the GID.  False: there is none. */
bool gid_find(struct fabric *f, const uint8_t gid[16], struct gid_place *place);
/* Writes the first GID of the port that has the unicast LID.  False: there is
 * no such port. */
bool gid_of_lid(struct fabric *f, uint16_t lid, uint8_t gid[16]);
/* Does the port with the GID have the LID? */
bool gid_has_lid(struct fabric *f, const uint8_t gid[16], uint16_t lid);
/* Are both LIDs those of one port?  A port with an LMC has several. */
bool gid_has_both_lids(struct fabric *f, uint16_t a, uint16_t b);

#endif
