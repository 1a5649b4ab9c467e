/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups that this process has joined at one port of an emulated
 * subnet, and the questions FABRIC_PROTO_JOIN and FABRIC_PROTO_LEAVE by which
 * the fabric is told.  Pure: fabric_link.c sends the questions and receives the
 * answers, one at a time.
 *
 * A group is asked about when its first queue pair attaches and when its last
 * one detaches.  A group without queue pairs is left before another one is
 * joined.  So the fabric has at most LINK_GROUPS_MAX groups of the port, and a
 * program that detaches from a group may at once attach to another one.
 *
 * Owner: fabric_link.c; lock: the progress lock.
 */
#ifndef HOST_LINK_GROUPS_H
#define HOST_LINK_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "host/host.h"

#define LINK_GROUPS_MAX HOST_MAX_GROUPS /* with queue pairs, at one port */

enum link_group_state {
	LINK_GROUP_OUT,	    /* the fabric does not have the group */
	LINK_GROUP_JOINS,   /* the open question is to join the group */
	LINK_GROUP_IN,	    /* the fabric has the group */
	LINK_GROUP_LEAVES,  /* the open question is to leave the group */
	LINK_GROUP_REFUSED, /* as LINK_GROUP_OUT, and is not asked for */
};

struct link_group {
	uint8_t gid[16];
	uint32_t members; /* queue pairs that are attached */
	enum link_group_state state;
};

/* Initially all zero. */
struct link_groups {
	/* At most LINK_GROUPS_MAX have members, and the fabric has or is asked
	 * for at most LINK_GROUPS_MAX. */
	struct link_group all[2 * LINK_GROUPS_MAX];
	uint32_t count;
};

/* Counts a queue pair that attaches to a group.  If the fabric has refused the
 * group, it is asked again.  Returns 0; -EINVAL: not a multicast GID; or
 * -ENOSPC: LINK_GROUPS_MAX other groups have queue pairs. */
int link_groups_attach(struct link_groups *g, const uint8_t gid[16]);
/* Counts a queue pair that detaches.  Returns 0, or -EINVAL: the group has no
 * queue pair. */
int link_groups_detach(struct link_groups *g, const uint8_t gid[16]);
/* Opens the next question: stores its kind, FABRIC_PROTO_JOIN or
 * FABRIC_PROTO_LEAVE, and its group.  Returns false, and stores nothing, if
 * nothing is to be asked.  The caller has no open question. */
bool link_groups_ask(struct link_groups *g, uint32_t *kind, uint8_t gid[16]);
/* Ends the open question, which is about `gid`.  is_refused: the fabric has
 * refused to join the group. */
void link_groups_answered(struct link_groups *g, const uint8_t gid[16],
			  bool is_refused);

#endif
