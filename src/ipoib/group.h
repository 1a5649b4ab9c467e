/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups that the interface has joined, wants to join or leaves.
 * The first group is the broadcast group.  Owner: struct ipoib.
 */
#ifndef IPOIB_GROUP_H
#define IPOIB_GROUP_H

#include "ipoib/ask.h"
#include "ipoib/route.h"
#include "ipoib/waiting.h"

/* Less than 64, the most groups to which a process may attach queue pairs
 * (HOST_MAX_LID_GROUPS). */
#define GROUP_MAX 60
/* The port leaves a send-only group that was not used for this time. */
#define GROUP_UNUSED_MS 60000

enum group_state {
	GROUP_FREE,   /* the entry is not in use */
	GROUP_OUT,    /* not a member, or the membership may have ended */
	GROUP_IN,     /* the port is a member */
	GROUP_LEAVES, /* the SA has not answered the request to leave */
};

struct group {
	enum group_state state;
	bool is_joined;	  /* the kernel has joined the group */
	bool is_full;	  /* the last join asked for a full membership */
	bool is_attached; /* the queue pair receives the group's packets */
	bool is_told;	  /* the user knows that the join or attachment fails */
	/* The states in which the port may be a member (enum sa_join_state):
	 * those that it has asked for, and that were neither refused nor left.
	 */
	uint8_t states;
	/* When the kernel last sent a frame to the group, or when the entry was
	 * added. */
	uint64_t used_ms;
	/* Before this time member_turn does not try to attach the queue pair.
	 * (An answered join tries at once.) */
	uint64_t attach_ms;
	uint64_t joined_ms; /* when a join last succeeded */
	struct route route; /* lid is 0: no packet can be sent to the group */
	struct ask ask;
	struct waiting waiting;
};

/* All zero is a table without groups. */
struct group_table {
	struct group all[GROUP_MAX];
};

/* Returns the group, or NULL. */
struct group *group_find(struct group_table *t, const uint8_t mgid[16]);
/* Adds a group in the state GROUP_OUT.  NULL: the table is full. */
struct group *group_add(struct group_table *t, const uint8_t mgid[16],
			uint64_t now_ms);
/* Frees the entry of a group.  No packets wait in the entry, and its route has
 * no handle. */
void group_remove(struct group *g);

#endif
