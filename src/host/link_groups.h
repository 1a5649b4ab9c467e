/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups that this process has joined at one port of an emulated
 * subnet, and the questions to the fabric: FABRIC_PROTO_JOIN when the first
 * use of a group begins, FABRIC_PROTO_LEAVE when the last use ends.  Sends
 * nothing: fabric_link.c sends the questions and receives the answers, one at a
 * time.
 *
 * The port leaves each group without uses before it joins another group.  So
 * the fabric has at most LINK_GROUPS_MAX groups of the port, and a program that
 * detaches from a group may at once attach to another one.
 *
 * Owner: fabric_link.c; lock: the progress lock.
 */
#ifndef HOST_LINK_GROUPS_H
#define HOST_LINK_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/proto.h"
#include "host/host.h"

/* The most groups that are in use at one port. */
#define LINK_GROUPS_MAX HOST_MAX_LID_GROUPS

enum link_group_state {
	LINK_GROUP_OUT,	   /* the fabric does not have the group */
	LINK_GROUP_JOINS,  /* the open question is to join the group */
	LINK_GROUP_IN,	   /* the fabric has the group */
	LINK_GROUP_LEAVES, /* the open question is to leave the group */
	/* The fabric has refused FABRIC_PROTO_JOIN; the fabric is asked again
	 * when the next use begins. */
	LINK_GROUP_REFUSED,
};

struct link_group {
	uint8_t gid[16];  /* the group's MGID */
	uint32_t members; /* uses that have begun and not ended */
	enum link_group_state state;
};

/* Initially all zero. */
struct link_groups {
	/* At most LINK_GROUPS_MAX groups have members.  At most LINK_GROUPS_MAX
	 * are in the state LINK_GROUP_JOINS, LINK_GROUP_IN or
	 * LINK_GROUP_LEAVES. */
	struct link_group all[2 * LINK_GROUPS_MAX];
	uint32_t count; /* how many entries of `all` are in use */
};

/* Begins a use of a group.  If the fabric has refused the group, a later
 * link_groups_ask asks again.  Returns 0; -EINVAL: gid is not a multicast GID;
 * or -ENOSPC: LINK_GROUPS_MAX other groups are in use. */
int link_groups_attach(struct link_groups *g, const uint8_t gid[16]);
/* Ends a use of a group.  Returns 0, or -EINVAL: the group is not in use. */
int link_groups_detach(struct link_groups *g, const uint8_t gid[16]);
/* Opens the next question: stores its kind, FABRIC_PROTO_JOIN or
 * FABRIC_PROTO_LEAVE, and its group.  Returns false, and stores nothing, if
 * there is nothing to ask.  The caller has no open question. */
bool link_groups_ask(struct link_groups *g, uint32_t *kind, uint8_t gid[16]);
/* Ends the open question, which is about `gid`.  is_refused: the fabric has
 * refused FABRIC_PROTO_JOIN; has no meaning for FABRIC_PROTO_LEAVE. */
void link_groups_answered(struct link_groups *g, const uint8_t gid[16],
			  bool is_refused);
/* Prints that the fabric has refused to let port m->number join the group
 * m->gid.  @path: the fabric's socket; @host: ADVERB_FABRIC_HOST; @err: why. */
void link_groups_say(const struct fabric_proto *m, const char *path,
		     const char *host, int err);

#endif
