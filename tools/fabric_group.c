/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_group.h"

#include "util/bits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* The bits of a MAD's status that mean the same in all classes
	 * (IBTA 13.4.7): for example, the port has no agent of this class, or
	 * the agent is busy. */
	STATUS_COMMON = 0xff,
	GID_MULTICAST = 0xff, /* the first byte of a multicast GID */
	PKEY_BASE = 0x7fff,   /* without the bit of full membership */
};

enum phase {
	PHASE_IDLE,   /* no question is open */
	PHASE_JOINS,  /* a join has no answer yet */
	PHASE_LEAVES, /* a leave has no answer yet */
};

/* A group that one port has joined or is to join: record.port_gid is the port,
 * and record.join_state the kind of membership. */
struct sa_group {
	struct list link;    /* in fabric_groups.all */
	struct list members; /* struct sa_group_member.link */
	/* Before the first granted join: the membership for which the first
	 * program has asked.  After that: the membership in the answer to the
	 * last granted join (read_answer). */
	struct sa_member record;
	/* The kernel is a member of the IP group (cmproto_group.is_shared).  So
	 * begin_leave sends no MAD: the IPoIB interface at the port ends the
	 * port's membership. */
	bool is_shared;
	bool is_in; /* the port is a member */
	/* In PHASE_JOINS: the port may have lost the group since the open
	 * question was sent (fabric_group_lose), so the answer to the question
	 * may be out of date. */
	bool is_stale;
	enum phase phase;
	const void *asker; /* the program that caused the open question; NULL:
			      it has ended */
	uint32_t id;	   /* of the open question */
};

/* A program's membership. */
struct sa_group_member {
	struct list link; /* in sa_group.members */
	void *owner;	  /* of fabric_group_join */
	uint32_t number;  /* by which the program names it */
	uint32_t serial;  /* of the program's request */
	bool waits;	  /* the request has no answer yet */
};

#define OF_GROUPS(l)  CONTAINER_OF(l, struct sa_group, link)
#define OF_MEMBERS(l) CONTAINER_OF(l, struct sa_group_member, link)

static const uint8_t no_gid[16];

void fabric_group_init(struct fabric_groups *all,
		       const struct fabric_group_sink *sink, void *user,
		       uint32_t *last_id)
{
	*all = (struct fabric_groups){
		.sink = sink, .user = user, .last_id = last_id};
	list_init(&all->all);
}

static void free_member(struct fabric_groups *all, struct sa_group_member *m)
{
	list_remove(&m->link);
	all->member_count--;
	free(m);
}

static void free_group(struct fabric_groups *all, struct sa_group *g)
{
	list_for_each_safe (l, &g->members)
		free_member(all, OF_MEMBERS(l));
	list_remove(&g->link);
	all->group_count--;
	free(g);
}

void fabric_group_free(struct fabric_groups *all)
{
	list_for_each_safe (l, &all->all)
		free_group(all, OF_GROUPS(l));
}

static void answer_member(struct fabric_groups *all, const struct sa_group *g,
			  struct sa_group_member *m, int err)
{
	m->waits = false;
	all->sink->answer(all->user, m->owner, m->serial, err, &g->record);
}

/* Tells the members that wait that the port is a member. */
static void admit_members(struct fabric_groups *all, struct sa_group *g)
{
	list_for_each (l, &g->members)
		if (OF_MEMBERS(l)->waits)
			answer_member(all, g, OF_MEMBERS(l), 0);
}

/* Refuses the members that wait. */
static void refuse_members(struct fabric_groups *all, struct sa_group *g,
			   int err)
{
	list_for_each_safe (l, &g->members) {
		if (!OF_MEMBERS(l)->waits)
			continue;
		answer_member(all, g, OF_MEMBERS(l), err);
		free_member(all, OF_MEMBERS(l));
	}
}

static bool has_waiting(const struct sa_group *g)
{
	list_for_each (l, &g->members)
		if (OF_MEMBERS(l)->waits)
			return true;
	return false;
}

static int ask_now(struct fabric_groups *all, struct sa_group *g, bool leaves)
{
	uint8_t mad[MAD_BYTES];

	g->id = ++*all->last_id;
	if (leaves)
		sa_write_leave(mad, g->id, &g->record);
	else
		sa_write_join(mad, g->id, &g->record, true);
	return all->sink->ask(all->user, g->record.port_gid, mad);
}

static void begin_join(struct fabric_groups *all, struct sa_group *g)
{
	int err = ask_now(all, g, false);

	if (err)
		refuse_members(all, g, err);
	else
		g->phase = PHASE_JOINS;
}

/* Leaves a group whose last member has gone.  If the question cannot be sent
 * now, the port stays a member, and step_group tries again after the next
 * answer of the administration (fabric_group_take). */
static void begin_leave(struct fabric_groups *all, struct sa_group *g)
{
	if (!g->is_shared && ask_now(all, g, true))
		return;
	g->is_in = false;
	if (!g->is_shared)
		g->phase = PHASE_LEAVES;
}

/* Asks the next question that the group needs, if none is open: a join or a
 * leave.  Frees a group that needs none and has no member.  For each new member
 * the port joins again, since a new subnet manager may not know the group, or
 * may have made the group with another LID. */
static void step_group(struct fabric_groups *all, struct sa_group *g)
{
	if (g->phase != PHASE_IDLE)
		return;
	if (has_waiting(g))
		begin_join(all, g);
	else if (g->is_in && list_is_empty(&g->members))
		begin_leave(all, g);
	if (g->phase == PHASE_IDLE && !g->is_in && list_is_empty(&g->members))
		free_group(all, g);
}

static void read_request(const struct cmproto *m, struct sa_member *r)
{
	const struct cmproto_group *g = &m->group;

	*r = (struct sa_member){.qkey = g->qkey,
				.flow_label = g->flow_label,
				.pkey = m->path.pkey,
				.mtu = g->mtu,
				.rate = g->rate,
				.sl = g->sl & 15,
				.traffic_class = g->traffic_class,
				.hop_limit = g->hop_limit,
				.join_state = g->join_state};
	memcpy(r->mgid, m->at.peer, 16);
	memcpy(r->port_gid, m->at.local, 16);
}

/* Has the group a GID?  The administration chooses one if not. */
static bool is_named(const struct sa_member *r)
{
	return memcmp(r->mgid, no_gid, 16) != 0;
}

/* May a program ask for this membership? */
static bool is_sound(const struct sa_member *r)
{
	return (!is_named(r) || r->mgid[0] == GID_MULTICAST) && r->pkey &&
	       (r->join_state == SA_JOIN_FULL ||
		r->join_state == SA_JOIN_FULL_SENDER);
}

/* Returns the group with the GID, the port and the join state of r; NULL: there
 * is none, or r does not name a group. */
static struct sa_group *find_group(const struct fabric_groups *all,
				   const struct sa_member *r)
{
	if (!is_named(r))
		return NULL;
	list_for_each (l, &all->all) {
		const struct sa_member *is = &OF_GROUPS(l)->record;

		if (!memcmp(is->mgid, r->mgid, 16) &&
		    !memcmp(is->port_gid, r->port_gid, 16) &&
		    is->join_state == r->join_state)
			return OF_GROUPS(l);
	}
	return NULL;
}

/* Has the group the Q_Key and the partition for which the program asks? */
static bool fits_request(const struct sa_group *g, const struct sa_member *r)
{
	return g->record.qkey == r->qkey &&
	       !((g->record.pkey ^ r->pkey) & PKEY_BASE);
}

static struct sa_group *make_group(struct fabric_groups *all,
				   const struct sa_member *r, bool is_shared)
{
	struct sa_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	all->group_count++;
	g->record = *r;
	g->is_shared = is_shared;
	list_init(&g->link);
	list_init(&g->members);
	list_push_tail(&all->all, &g->link);
	return g;
}

static struct sa_group_member *make_member(struct fabric_groups *all,
					   struct sa_group *g, void *owner,
					   const struct cmproto *m)
{
	struct sa_group_member *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	*made = (struct sa_group_member){.owner = owner,
					 .number = m->call_id,
					 .serial = m->serial,
					 .waits = true};
	list_init(&made->link);
	list_push_tail(&g->members, &made->link);
	all->member_count++;
	return made;
}

/* May the program ask for one more membership? */
static bool has_quota(const struct fabric_groups *all, const void *owner)
{
	uint32_t members = 0, questions = 0;

	list_for_each (l, &all->all) {
		const struct sa_group *g = OF_GROUPS(l);

		questions += g->phase != PHASE_IDLE && g->asker == owner;
		list_for_each (n, &g->members)
			members += OF_MEMBERS(n)->owner == owner;
	}
	return members < FABRIC_GROUP_OWN && questions < FABRIC_GROUP_OWN &&
	       all->member_count < FABRIC_GROUP_MEMBERS;
}

int fabric_group_join(struct fabric_groups *all, void *owner,
		      const struct cmproto *m)
{
	struct sa_member r;
	struct sa_group *g;

	read_request(m, &r);
	if (!is_sound(&r))
		return -EINVAL;
	if (!has_quota(all, owner))
		return -ENOBUFS;
	g = find_group(all, &r);
	if (g && !fits_request(g, &r))
		return -EINVAL;
	/* Groups whose members have gone remain until their questions are
	 * answered. */
	if (!g && all->group_count == FABRIC_GROUP_MEMBERS)
		return -ENOBUFS;
	if (!g)
		g = make_group(all, &r, m->group.is_shared);
	if (!g)
		return -ENOMEM;
	if (!make_member(all, g, owner, m)) {
		step_group(all, g);
		return -ENOMEM;
	}
	g->is_shared |= m->group.is_shared;
	if (g->phase == PHASE_IDLE)
		g->asker = owner;
	step_group(all, g);
	return 0;
}

void fabric_group_leave(struct fabric_groups *all, const void *owner,
			uint32_t number)
{
	list_for_each (l, &all->all) {
		struct sa_group *g = OF_GROUPS(l);

		list_for_each (n, &g->members) {
			struct sa_group_member *m = OF_MEMBERS(n);

			if (m->owner != owner || m->number != number)
				continue;
			if (m->waits)
				answer_member(all, g, m, -ECANCELED);
			free_member(all, m);
			if (g->phase == PHASE_IDLE)
				g->asker = owner;
			step_group(all, g);
			return;
		}
	}
}

void fabric_group_drop(struct fabric_groups *all, const void *owner)
{
	list_for_each_safe (l, &all->all) {
		struct sa_group *g = OF_GROUPS(l);
		bool has_changed = false;

		list_for_each_safe (n, &g->members)
			if (OF_MEMBERS(n)->owner == owner) {
				free_member(all, OF_MEMBERS(n));
				has_changed = true;
			}
		/* a later program's struct may lie at the address `owner` */
		if (g->asker == owner)
			g->asker = NULL;
		if (has_changed)
			step_group(all, g);
	}
}

static void lose_members(struct fabric_groups *all, struct sa_group *g)
{
	list_for_each_safe (l, &g->members) {
		struct sa_group_member *m = OF_MEMBERS(l);

		if (m->waits)
			continue;
		all->sink->lost(all->user, m->owner, m->number);
		free_member(all, m);
	}
}

void fabric_group_lose(struct fabric_groups *all,
		       bool (*is_lost)(const void *arg,
				       const struct sa_member *r),
		       const void *arg)
{
	list_for_each_safe (l, &all->all) {
		struct sa_group *g = OF_GROUPS(l);

		if (!is_lost(arg, &g->record))
			continue;
		lose_members(all, g);
		g->is_in = false;
		g->is_stale = g->phase == PHASE_JOINS;
		step_group(all, g);
	}
}

/* Reads the answer to a join.  Returns 0, with the membership in *r, or -errno,
 * as cmproto.h says. */
static int read_answer(const struct sa_group *g, const uint8_t *mad,
		       size_t bytes, struct sa_member *r)
{
	/* The answer's join state has the bits of all memberships of the port
	 * in the group, not only of the membership that was asked for. */
	const struct sa_member asked = g->record;
	struct sa_answer a;

	if (!sa_read(mad, bytes, &a) || a.kind != SA_MEMBER)
		return -ECONNREFUSED;
	if (a.status)
		return a.status & STATUS_COMMON ? -EREMOTEIO : -ECONNREFUSED;
	if (is_named(&asked) && memcmp(a.member.mgid, asked.mgid, 16) != 0)
		return -ECONNREFUSED;
	*r = a.member;
	memcpy(r->port_gid, asked.port_gid, 16);
	r->join_state = asked.join_state;
	return 0;
}

static void end_join(struct fabric_groups *all, struct sa_group *g, int err,
		     const uint8_t *mad, size_t bytes)
{
	bool was_stale = g->is_stale;

	g->is_stale = false;
	if (!err && was_stale && has_waiting(g))
		return; /* step_group asks again */
	if (!err)
		err = read_answer(g, mad, bytes, &g->record);
	if (err) {
		refuse_members(all, g, err);
		return;
	}
	g->is_in = true;
	admit_members(all, g);
}

static struct sa_group *find_asker(const struct fabric_groups *all, uint32_t id)
{
	list_for_each (l, &all->all) {
		struct sa_group *g = OF_GROUPS(l);

		if (g->id == id && g->phase != PHASE_IDLE)
			return g;
	}
	return NULL;
}

/* Calls step_group for each group: a leave may be due for which the question
 * could not be sent before. */
static void step_all(struct fabric_groups *all)
{
	list_for_each_safe (l, &all->all)
		step_group(all, OF_GROUPS(l));
}

bool fabric_group_take(struct fabric_groups *all, uint32_t id, int err,
		       const uint8_t *mad, size_t bytes)
{
	struct sa_group *g = find_asker(all, id);
	bool joins;

	if (!g)
		return false;
	joins = g->phase == PHASE_JOINS;
	g->phase = PHASE_IDLE;
	if (joins)
		end_join(all, g, err, mad, bytes);
	step_all(all);
	return true;
}

bool fabric_group_is_busy(const struct fabric_groups *all)
{
	list_for_each (l, &all->all)
		if (OF_GROUPS(l)->phase != PHASE_IDLE)
			return true;
	return false;
}
