/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The neighbours: interfaces of other hosts whose hardware addresses have come
 * in ARP and neighbour discovery.  A neighbour is found by its MAC, and its MAC
 * by its LID and QPN.
 * If the table is full, the neighbour to which no packet was sent for the
 * longest time is forgotten.  A neighbour to which no packet was ever sent is
 * forgotten first, so that addresses that somebody invents replace no neighbour
 * in use; of these neighbours, those for which packets wait are forgotten last.
 * A packet that waits is not sent yet: an invented GID has no path.  For a new
 * neighbour whose GID has NEIGH_PER_GID neighbours already, one of these is
 * forgotten, so that QPNs that somebody invents for an existing GID replace no
 * neighbour of another GID.  Owner: struct ipoib.
 */
#ifndef IPOIB_NEIGH_H
#define IPOIB_NEIGH_H

#include "ipoib/ask.h"
#include "ipoib/conn.h"
#include "ipoib/hwaddr.h"
#include "ipoib/route.h"
#include "ipoib/waiting.h"

#define NEIGH_MAX     2048 /* neighbours */
#define NEIGH_PER_GID 8	   /* neighbours with one GID, if the table is full */
#define NEIGH_BUCKETS 4096
#define NEIGH_SOURCES 1024 /* slots to find MACs by LID and QPN */
/* A neighbour to which no packet was sent for this time is forgotten if another
 * neighbour has the same MAC. */
#define NEIGH_UNUSED_MS 60000

struct neigh {
	struct hwaddr address;
	uint8_t mac[HWADDR_MAC_BYTES];
	struct neigh *next;  /* in its bucket */
	uint64_t used_ms;    /* when a packet was last sent there; 0: never */
	uint64_t learned_ms; /* when the path was learned */
	struct route route;  /* lid is 0: the path is not known */
	struct ask ask;	     /* for the path */
	bool wants_path;     /* the SA is to be asked for the path */
	struct waiting waiting; /* for the path or the connection */
	struct neigh_conn conn; /* only in connected mode */
};

/* The MAC of the sender of packets with a LID and a QPN. */
struct neigh_source {
	uint16_t lid;
	uint32_t qpn; /* 0: the slot is free */
	uint8_t mac[HWADDR_MAC_BYTES];
};

/* All zero is an empty table. */
struct neigh_table {
	struct neigh *buckets[NEIGH_BUCKETS];
	uint32_t count;
	/* Another pair of LID and QPN may take the slot of an older one. */
	struct neigh_source sources[NEIGH_SOURCES];
};

/* Returns the neighbour with the MAC, or NULL. */
struct neigh *neigh_find(const struct neigh_table *t,
			 const uint8_t mac[HWADDR_MAC_BYTES]);
/* Adds a neighbour, whose MAC no other one has.  NULL: the table is full, or
 * there is no memory. */
struct neigh *neigh_add(struct neigh_table *t, const struct hwaddr *a);
/* Returns the neighbour to forget for a new one with this GID, or NULL if there
 * is none. */
struct neigh *neigh_oldest(const struct neigh_table *t, const uint8_t gid[16]);
/* Removes and frees a neighbour, which has no waiting packets, no connection
 * and no address handle. */
void neigh_remove(struct neigh_table *t, struct neigh *n);
/* Iterates: returns the neighbour after n; NULL at the end.  n is NULL at
 * first. */
struct neigh *neigh_next(const struct neigh_table *t, const struct neigh *n);
/* Notes the LID from which a neighbour sends. */
void neigh_note_source(struct neigh_table *t, const struct neigh *n,
		       uint16_t lid);
/* Returns the MAC of the sender of packets with a LID and a QPN; NULL: it is
 * not known. */
const uint8_t *neigh_source(const struct neigh_table *t, uint16_t lid,
			    uint32_t qpn);

#endif
