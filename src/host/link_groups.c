/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_groups.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "fabric/proto.h"
#include "hdr/bytes.h"
#include "log/log.h"

#define SLOTS	      (2 * LINK_GROUPS_MAX)
#define GID_MULTICAST 0xff /* first byte */

_Static_assert(LINK_GROUPS_MAX <= DATA_GROUPS,
	       "the fabric has room for the groups of a port");

static struct link_group *find_group(struct link_groups *g,
				     const uint8_t gid[16])
{
	for (uint32_t i = 0; i < g->count; i++)
		if (!memcmp(g->all[i].gid, gid, 16))
			return &g->all[i];
	return NULL;
}

/* Returns how many groups have members. */
static uint32_t count_used(const struct link_groups *g)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < g->count; i++)
		used += g->all[i].members != 0;
	return used;
}

/* Removes the group if the program does not use it and the port is not in it at
 * the fabric.  The last group of the array takes its place. */
static void forget_unused(struct link_groups *g, struct link_group *one)
{
	bool is_out = one->state == LINK_GROUP_OUT ||
		      one->state == LINK_GROUP_REFUSED;

	if (is_out && !one->members)
		*one = g->all[--g->count];
}

int link_groups_attach(struct link_groups *g, const uint8_t gid[16])
{
	struct link_group *one = find_group(g, gid);

	if (gid[0] != GID_MULTICAST)
		return -EINVAL;
	if ((!one || !one->members) && count_used(g) == LINK_GROUPS_MAX)
		return -ENOSPC;
	if (!one) {
		if (g->count == SLOTS)
			return -ENOSPC;
		one = &g->all[g->count++];
		*one = (struct link_group){.state = LINK_GROUP_OUT};
		memcpy(one->gid, gid, 16);
	}
	one->members++;
	if (one->state == LINK_GROUP_REFUSED)
		one->state = LINK_GROUP_OUT;
	return 0;
}

int link_groups_detach(struct link_groups *g, const uint8_t gid[16])
{
	struct link_group *one = find_group(g, gid);

	if (!one || !one->members)
		return -EINVAL;
	one->members--;
	forget_unused(g, one);
	return 0;
}

/* Returns a group in this state, with members or, if has_members is false,
 * without members; NULL: there is none. */
static struct link_group *
find_next(struct link_groups *g, enum link_group_state state, bool has_members)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->all[i].state == state &&
		    (g->all[i].members != 0) == has_members)
			return &g->all[i];
	return NULL;
}

bool link_groups_ask(struct link_groups *g, uint32_t *kind, uint8_t gid[16])
{
	struct link_group *one = find_next(g, LINK_GROUP_IN, false);
	bool leaves = one != NULL;

	if (!leaves)
		one = find_next(g, LINK_GROUP_OUT, true);
	if (!one)
		return false;
	one->state = leaves ? LINK_GROUP_LEAVES : LINK_GROUP_JOINS;
	*kind = leaves ? FABRIC_PROTO_LEAVE : FABRIC_PROTO_JOIN;
	memcpy(gid, one->gid, 16);
	return true;
}

void link_groups_answered(struct link_groups *g, const uint8_t gid[16],
			  bool is_refused)
{
	struct link_group *one = find_group(g, gid);

	if (!one)
		return;
	if (one->state == LINK_GROUP_LEAVES)
		one->state = LINK_GROUP_OUT;
	else if (one->state == LINK_GROUP_JOINS)
		one->state = is_refused ? LINK_GROUP_REFUSED : LINK_GROUP_IN;
	forget_unused(g, one);
}

/* Returns why the fabric refuses a group. */
static const char *why_refused(int err)
{
	return err == -ENOSPC ? "this process has joined as many groups there "
				"as the fabric allows"
			      : strerror(-err);
}

void link_groups_say(const struct fabric_proto *m, const char *path,
		     const char *host, int err)
{
	char group[INET6_ADDRSTRLEN] = "";

	inet_ntop(AF_INET6, m->gid, group, sizeof(group));
	log_say(LOG_FABRIC_GROUP,
		bytes_get64(m->gid + 8) ^ (uint64_t)m->number << 48,
		"the fabric at %s (ADVERB_FABRIC) refuses to let port %u of "
		"this process's host (ADVERB_FABRIC_HOST=%s) join the "
		"multicast group %s: %s; the queue pairs "
		"that are attached to the group there receive none of its "
		"packets; detach queue pairs from other groups, and then "
		"attach one to this group again",
		path, m->number, host, group, why_refused(err));
}
