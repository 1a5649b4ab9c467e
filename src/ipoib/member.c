/* SPDX-License-Identifier: BSD-2-Clause */
#include "ipoib/member.h"

#include <string.h>

#include "ipoib/mgid.h"
#include "ipoib/report.h"

#define SEND_ONLY_MAX (GROUP_MAX / 2)
#define ATTACH_MS     5000  /* until a failed attachment is tried again */
#define RENEWALS      3	    /* so many failed renewals end the interface */
#define OLD_MS	      30000 /* the age at which a send-only join is repeated */
/* The statuses of the answer to a join of a group that does not exist, if the
 * request lacks the parameters with which the SA creates a group
 * (IBTA Vol 1, 15.2.5.17). */
#define STATUS_INSUFFICIENT 0x0600
#define STATUS_NO_RECORDS   0x0300

static bool is_broadcast(const struct ipoib *m, const struct group *g)
{
	return g == &m->groups.all[0];
}

/* Is the port to be a full member? */
static bool wants_full(const struct ipoib *m, const struct group *g)
{
	return is_broadcast(m, g) || g->is_joined;
}

static void drop_waiting(struct ipoib *m, struct group *g)
{
	m->counters.waited += waiting_drop(&g->waiting);
}

static void detach_group(struct ipoib *m, struct group *g)
{
	if (g->is_attached)
		m->sink->attach(m->ctx, g->route.gid, false);
	g->is_attached = false;
}

/* Does the interface wait to attach the queue pair? */
static bool wants_attach(const struct ipoib *m, const struct group *g)
{
	return g->state == GROUP_IN && g->is_full && wants_full(m, g) &&
	       !g->is_attached;
}

static void attach_group(struct ipoib *m, struct group *g, uint64_t now_ms)
{
	g->is_attached = m->sink->attach(m->ctx, g->route.gid, true);
	g->attach_ms = now_ms + ATTACH_MS;
	if (!g->is_attached && !g->is_told)
		report_attach(m, g->route.gid);
	g->is_told |= !g->is_attached;
}

static void remove_group(struct ipoib *m, struct group *g)
{
	detach_group(m, g);
	drop_waiting(m, g);
	ipoib_release_route(m, &g->route);
	group_remove(g);
}

void member_begin(struct ipoib *m, uint64_t now_ms)
{
	uint8_t mgid[16];

	mgid_broadcast(m->port.pkey, mgid);
	group_add(&m->groups, mgid, now_ms);
}

void member_forget(struct ipoib *m)
{
	for (uint32_t i = 0; i < GROUP_MAX; i++)
		if (m->groups.all[i].state != GROUP_FREE)
			remove_group(m, &m->groups.all[i]);
}

void member_renew(struct ipoib *m)
{
	for (uint32_t i = 0; i < GROUP_MAX; i++) {
		struct group *g = &m->groups.all[i];

		if (g->state == GROUP_FREE)
			continue;
		ask_reset(&g->ask);
		g->state = GROUP_OUT;
	}
}

static uint8_t state_of(bool is_full)
{
	return is_full ? SA_JOIN_FULL : SA_JOIN_SEND_ONLY;
}

/* Writes and sends the request of a group to the SA: to leave, or to join.  The
 * states of a port's joins add up (IBTA 15.2.5.17), so a request to leave names
 * every state in which the port may be a member. */
static void ask_now(struct ipoib *m, struct group *g, uint64_t now_ms)
{
	struct sa_member record = m->broadcast;
	bool is_full = wants_full(m, g);
	uint32_t id = ipoib_next_id(m);
	uint8_t mad[MAD_BYTES];

	memcpy(record.mgid, g->route.gid, 16);
	memcpy(record.port_gid, m->self.gid, 16);
	record.pkey = m->port.pkey;
	ask_begin(&g->ask, id, now_ms);
	if (g->state == GROUP_LEAVES) {
		record.join_state = g->states;
		sa_write_leave(mad, id, &record);
	} else {
		record.join_state = state_of(is_full);
		g->is_full = is_full;
		g->states |= record.join_state;
		/* a send-only join creates no group (RFC 4391, 10) */
		sa_write_join(mad, id, &record, !is_broadcast(m, g) && is_full);
	}
	m->sink->ask(m->ctx, mad);
}

static void set_route(struct ipoib *m, struct group *g,
		      const struct sa_member *a)
{
	struct route *r = &g->route;

	ipoib_release_route(m, r);
	r->lid = a->mlid;
	r->flow_label = a->flow_label;
	r->sl = a->sl;
	r->rate = a->rate;
	r->traffic_class = a->traffic_class;
	r->hop_limit = a->hop_limit;
	r->is_global = true;
}

/* Returns the code of the smaller one of the MTUs of the group and the port. */
static uint8_t mtu_of(const struct ipoib *m, const struct sa_member *a)
{
	return m->port.mtu < a->mtu ? m->port.mtu : a->mtu;
}

static void bring_up(struct ipoib *m, const struct sa_member *a,
		     uint64_t now_ms)
{
	struct ipoib_link link = {.is_up = true,
				  .mtu = m->connected_mtu
						 ? m->connected_mtu
						 : (128u << mtu_of(m, a)) -
							   IPOIB_HEADER_BYTES,
				  .broadcast = *a};

	memcpy(link.mac, m->mac, HWADDR_MAC_BYTES);
	m->broadcast = *a;
	m->mtu = mtu_of(m, a);
	m->is_up = true;
	m->sink->link(m->ctx, &link);
	announce_begin(&m->announce, now_ms);
	report_up(m);
}

/* Has the broadcast group another Q_Key or MTU than before? */
static bool has_changed(const struct sa_member *old,
			const struct sa_member *new)
{
	return old->qkey != new->qkey || old->mtu != new->mtu;
}

static void take_membership(struct ipoib *m, struct group *g,
			    const struct sa_member *a, uint64_t now_ms)
{
	ask_reset(&g->ask);
	g->state = GROUP_IN;
	g->is_told = false;
	g->joined_ms = now_ms;
	set_route(m, g, a);
	if (is_broadcast(m, g) && (!m->is_up || has_changed(&m->broadcast, a)))
		bring_up(m, a, now_ms);
	if (!wants_full(m, g))
		detach_group(m, g);
	else if (!g->is_attached)
		attach_group(m, g, now_ms);
	ipoib_send_waiting(m, &g->route, &g->waiting);
}

/* The broadcast group cannot be joined: without it, there is no interface. */
static void lose_broadcast(struct ipoib *m, uint16_t status)
{
	struct ipoib_link link = {.is_up = false};
	struct group *g = &m->groups.all[0];

	memcpy(link.mac, m->mac, HWADDR_MAC_BYTES);
	for (uint32_t i = 1; i < GROUP_MAX; i++)
		if (m->groups.all[i].state != GROUP_FREE)
			remove_group(m, &m->groups.all[i]);
	detach_group(m, g);
	drop_waiting(m, g);
	if (m->is_up)
		m->sink->link(m->ctx, &link);
	m->is_up = false;
	announce_end(&m->announce);
	report_down(m,
		    !status ? IPOIB_REASON_SILENT
		    : status == STATUS_INSUFFICIENT ||
				    status == STATUS_NO_RECORDS
			    ? IPOIB_REASON_NO_GROUP
			    : IPOIB_REASON_REFUSED,
		    status);
}

/* Has the SA refused to make a send-only member a full member?  The port then
 * stays a send-only member, and can send to the group. */
static bool stays_sender(const struct ipoib *m, const struct group *g,
			 uint16_t status)
{
	return status && !is_broadcast(m, g) && g->state == GROUP_IN &&
	       g->is_full && g->states & SA_JOIN_SEND_ONLY;
}

/* Called when a join has failed.  status: that of the SA's refusal; 0: no
 * answer has come. */
static void fail_join(struct ipoib *m, struct group *g, uint16_t status,
		      uint64_t now_ms)
{
	bool stays = stays_sender(m, g, status);

	ask_fail(&g->ask, now_ms);
	g->state = stays ? GROUP_IN : GROUP_OUT;
	if (status)
		g->states &= (uint8_t)~state_of(g->is_full);
	if (is_broadcast(m, g)) {
		/* one lost answer to a renewal does not end the membership */
		if (status || !m->is_up || g->ask.failures >= RENEWALS)
			lose_broadcast(m, status);
		return;
	}
	if (stays)
		g->is_full = false;
	else if (status)
		g->route.lid = 0;
	drop_waiting(m, g);
	if (g->is_joined && !g->is_told)
		report_group(m, g->route.gid, status);
	g->is_told |= g->is_joined;
}

/* Called when the SA has answered the request to leave, or has not answered any
 * of its tries. */
static void end_leave(struct ipoib *m, struct group *g)
{
	if (!wants_full(m, g) || m->ends) {
		remove_group(m, g);
		return;
	}
	ask_reset(&g->ask);
	g->state = GROUP_OUT;
	g->states = 0;
}

static struct group *find_asker(struct ipoib *m, uint32_t id)
{
	for (uint32_t i = 0; i < GROUP_MAX; i++)
		if (m->groups.all[i].state != GROUP_FREE &&
		    m->groups.all[i].ask.id == id)
			return &m->groups.all[i];
	return NULL;
}

bool member_answer(struct ipoib *m, const struct sa_answer *answer,
		   uint64_t now_ms)
{
	struct group *g = find_asker(m, answer->id);
	bool leaves = g && g->state == GROUP_LEAVES;

	if (!g || answer->kind != (leaves ? SA_LEFT : SA_MEMBER))
		return false;
	if (leaves)
		end_leave(m, g);
	else if (answer->status)
		fail_join(m, g, answer->status, now_ms);
	else if (!memcmp(answer->member.mgid, g->route.gid, 16))
		take_membership(m, g, &answer->member, now_ms);
	return true;
}

static struct group *add_joined(struct ipoib *m, const struct joined_group *j,
				uint64_t now_ms)
{
	uint8_t mgid[16];
	struct group *g;

	if (j->is_v6)
		mgid_ipv6(m->groups.all[0].route.gid, j->ipv6, mgid);
	else
		mgid_ipv4(m->groups.all[0].route.gid, j->ipv4, mgid);
	g = group_find(&m->groups, mgid);
	return g ? g : group_add(&m->groups, mgid, now_ms);
}

void member_set_joined(struct ipoib *m, const struct joined *j, uint64_t now_ms)
{
	bool was[GROUP_MAX], is[GROUP_MAX] = {false}, is_full = false;

	if (!m->is_up || m->ends)
		return;
	for (uint32_t i = 0; i < GROUP_MAX; i++)
		was[i] = m->groups.all[i].is_joined;
	for (uint32_t i = 0; i < j->count; i++) {
		struct group *g = add_joined(m, &j->all[i], now_ms);

		if (g)
			is[g - m->groups.all] = true;
		else
			is_full = true;
	}
	report_full(m, is_full);
	for (uint32_t i = 1; i < GROUP_MAX; i++) {
		struct group *g = &m->groups.all[i];

		g->is_joined = is[i];
		/* a group that the kernel has just joined is asked for at
		 * once, even if a send-only join has just failed */
		if (is[i] && !was[i] && g->state == GROUP_OUT)
			ask_reset(&g->ask);
		if (was[i] && !is[i])
			detach_group(m, g);
	}
}

/* Is the send-only join to be repeated?  The last full member of a group to
 * which this port sends may have left, and a new full member may have created
 * the group again, with another LID.  No message tells the senders. */
static bool is_old(const struct group *g, uint64_t now_ms)
{
	return g->state == GROUP_IN && !g->is_full && !g->ask.id &&
	       g->used_ms > g->joined_ms && now_ms >= g->joined_ms + OLD_MS;
}

static uint32_t count_senders(const struct ipoib *m)
{
	uint32_t count = 0;

	for (uint32_t i = 1; i < GROUP_MAX; i++)
		count += m->groups.all[i].state != GROUP_FREE &&
			 !m->groups.all[i].is_joined;
	return count;
}

void member_send(struct ipoib *m, const uint8_t mgid[16], const uint8_t *p,
		 size_t bytes, uint64_t now_ms)
{
	struct group *g = group_find(&m->groups, mgid);

	if (!g && count_senders(m) < SEND_ONLY_MAX)
		g = group_add(&m->groups, mgid, now_ms);
	if (!g) {
		m->counters.unknown++;
		return;
	}
	g->used_ms = now_ms;
	if (is_old(g, now_ms))
		m->deadline_ms = now_ms;
	if (g->route.lid) {
		m->sink->packet(m->ctx, &g->route, p, bytes);
		return;
	}
	if (g->ask.id || ask_may_begin(&g->ask, now_ms))
		m->counters.waited += waiting_add(&g->waiting, p, bytes);
	else
		m->counters.waited++; /* asked in vain a short time ago */
	m->deadline_ms = now_ms;
}

static void begin_leave(struct ipoib *m, struct group *g, uint64_t now_ms)
{
	detach_group(m, g);
	ask_reset(&g->ask);
	g->state = GROUP_LEAVES;
	g->route.lid = 0;
	ask_now(m, g, now_ms);
}

/* Has the port no more use for its membership? */
static bool is_unused(const struct ipoib *m, const struct group *g,
		      uint64_t now_ms)
{
	if (m->ends)
		return true;
	return !wants_full(m, g) &&
	       (g->is_full || now_ms >= g->used_ms + GROUP_UNUSED_MS);
}

/* Called when a question has no answer in time.  Asks again, at most ASK_TRIES
 * times in all, and not for a join after ipoib_leave.  If it does not ask
 * again, ends the leave or fails the join. */
static void give_up(struct ipoib *m, struct group *g, uint64_t now_ms)
{
	bool leaves = g->state == GROUP_LEAVES;

	if (g->ask.tries < ASK_TRIES && (leaves || !m->ends))
		ask_now(m, g, now_ms);
	else if (leaves)
		end_leave(m, g);
	else
		fail_join(m, g, 0, now_ms);
}

/* Is the port to join the group, or to become a full member?  A send-only join
 * needs packets that wait, or an earlier join. */
static bool wants_join(const struct ipoib *m, const struct group *g)
{
	if (g->state == GROUP_OUT)
		return wants_full(m, g) || g->waiting.count || g->route.lid;
	return g->state == GROUP_IN && wants_full(m, g) && !g->is_full;
}

static void step_group(struct ipoib *m, struct group *g, uint64_t now_ms)
{
	if (ask_is_late(&g->ask, now_ms))
		give_up(m, g, now_ms);
	if (g->state == GROUP_FREE || g->ask.id)
		return;
	if (is_unused(m, g, now_ms)) {
		if (g->states)
			begin_leave(m, g, now_ms);
		else
			remove_group(m, g);
		return;
	}
	if (wants_attach(m, g) && now_ms >= g->attach_ms)
		attach_group(m, g, now_ms);
	if ((wants_join(m, g) || is_old(g, now_ms)) &&
	    (m->is_up || is_broadcast(m, g)) && ask_may_begin(&g->ask, now_ms))
		ask_now(m, g, now_ms);
}

static uint64_t deadline_of(const struct ipoib *m, const struct group *g)
{
	if (g->ask.id || wants_join(m, g))
		return ask_deadline(&g->ask);
	if (wants_attach(m, g))
		return g->attach_ms;
	return wants_full(m, g) ? ASK_NEVER : g->used_ms + GROUP_UNUSED_MS;
}

uint64_t member_turn(struct ipoib *m, uint64_t now_ms)
{
	uint64_t next = ASK_NEVER;

	for (uint32_t i = 0; i < GROUP_MAX; i++) {
		struct group *g = &m->groups.all[i];
		uint64_t due;

		if (g->state != GROUP_FREE)
			step_group(m, g, now_ms);
		if (g->state == GROUP_FREE)
			continue;
		due = deadline_of(m, g);
		next = due < next ? due : next;
	}
	return next;
}

bool member_has_left(const struct ipoib *m)
{
	for (uint32_t i = 0; i < GROUP_MAX; i++)
		if (m->groups.all[i].state != GROUP_FREE &&
		    m->groups.all[i].states)
			return false;
	return true;
}
