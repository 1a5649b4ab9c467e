/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/other_user.h"

#include "broker/entropy.h"
#include "broker/shared_page.h"
#include "broker/thread_state.h"
#include "broker/user.h"
#include "wire/relay.h"

#include <errno.h>
#include <unistd.h>

#define UPPER_HALF ((STEER_CLASS_MAX + 2) / 2)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool is_free(const struct reuseport_group_member *m)
{
	return m->use == REUSEPORT_NOBODYS;
}

static bool has_relay(const struct reuseport_group_member *m, uid_t user)
{
	return m->is_other_user && m->relay_fd >= 0 && m->user == user;
}

/*
 * Divides OTHER_USER_BYTES among the relays of a user, after their number has
 * changed.  Each relay may hold the bytes that wait there now, and an equal
 * part of what is left.  The sum of these bounds exceeds OTHER_USER_BYTES only
 * by the kernel's overhead for the last message in each relay (relay_send).
 */
static void share_bytes(struct reuseport_group *g, uid_t user)
{
	uint64_t waiting = 0, left, each;
	uint32_t n = 0;

	for (uint32_t i = g->count; i <= STEER_CLASS_MAX; i++) {
		struct reuseport_group_member *m = &g->member[i];

		if (!has_relay(m, user))
			continue;
		m->relay_most = relay_waiting(m->relay_fd);
		waiting += m->relay_most;
		n++;
	}
	left = waiting < OTHER_USER_BYTES ? OTHER_USER_BYTES - waiting : 0;
	each = n ? left / n : 0;
	for (uint32_t i = g->count; i <= STEER_CLASS_MAX; i++)
		if (has_relay(&g->member[i], user))
			g->member[i].relay_most += (uint32_t)each;
}

/*
 * Closes the relay of a process that has ended, unless datagrams wait there.  A
 * forked child of that process may still have the receiving end and never read
 * it.  While datagrams wait, the relay counts against OTHER_USER_BYTES of its
 * user, and no process gets its index.
 */
static void close_relay(struct reuseport_group *g,
			struct reuseport_group_member *m)
{
	if (m->relay_fd < 0 || relay_waiting(m->relay_fd))
		return;
	close_fd(&m->relay_fd);
	share_bytes(g, m->user);
}

/* Gives m a zeroed page: the page of the last process if `user` had the index
 * last and the page can be zeroed, or a new one. */
static void open_page(struct reuseport_group_member *m, uid_t user)
{
	if (m->is_other_user && m->page_fd >= 0 &&
	    user_is_same(user, m->user) &&
	    shared_page_clear(m->page_fd, ++m->generation))
		return;
	if (m->is_other_user)
		close_fd(&m->page_fd);
	m->page_fd = shared_page_new();
	m->generation = 0;
}

/* Returns the index with this use, and without a relay, that was released
 * first; 0: there is none.  user: the user that had the index last; NULL: any
 * user. */
static uint32_t find_oldest(const struct reuseport_group *g,
			    enum reuseport_group_use use, const uid_t *user)
{
	uint32_t best = 0;

	for (uint32_t i = g->count; i <= STEER_CLASS_MAX; i++) {
		const struct reuseport_group_member *m = &g->member[i];

		if (m->is_other_user && m->use == use && m->relay_fd < 0 &&
		    (!user || user_is_same(*user, m->user)) &&
		    (!best || m->freed_ms < g->member[best].freed_ms))
			best = i;
	}
	return best;
}

static bool is_unused(const struct reuseport_group_member *m)
{
	return is_free(m) && !m->is_other_user;
}

/* Draws an index that no process has had: by chance from the upper half; if
 * that is used up, the highest one below it.  0: there is none. */
static uint32_t draw_unused(const struct reuseport_group *g)
{
	uint32_t from = g->count > UPPER_HALF ? g->count : UPPER_HALF;
	uint32_t i = STEER_CLASS_MAX, unused = 0, skip;

	for (uint32_t k = from; k <= STEER_CLASS_MAX; k++)
		unused += is_unused(&g->member[k]);
	skip = unused ? (uint32_t)(entropy() % unused) : 0;
	for (; i >= g->count && i; i--)
		if (is_unused(&g->member[i]) && !skip--)
			return i;
	return 0;
}

/* May `user` have an index that is free for every user?  Returns 0, or -ENOSPC
 * with a sentence in *why.  Processes of users that cannot be told from each
 * other count as one user's. */
static int refuse_more(const struct reuseport_group *g, uid_t user,
		       const char **why)
{
	uint32_t has = 0, left = 0, rest = 0;

	for (uint32_t i = g->count; i <= STEER_CLASS_MAX; i++) {
		const struct reuseport_group_member *m = &g->member[i];

		has += !is_free(m) && m->user == user;
		left += is_free(m);
		rest += !is_free(m) && m->use != REUSEPORT_OWNED;
	}
	if (has < left)
		return 0;
	if (has)
		*why = thread_state_say(
			"this user has %u classes, its share of port 4791: end "
			"RDMA programs, or wait 10 minutes",
			has);
	else
		*why = rest ? "every steering class of port 4791 is in use or "
			      "rests: end RDMA programs, or wait 10 minutes"
			    : REUSEPORT_GROUP_FULL;
	return -ENOSPC;
}

/* Returns an index for a process of that user, or -errno with a sentence in
 * *why. */
static int choose_index(const struct reuseport_group *g, uid_t user,
			const char **why)
{
	uint32_t i = find_oldest(g, REUSEPORT_FREE, &user);
	int err = i ? 0 : refuse_more(g, user, why);

	if (!i && !err)
		i = draw_unused(g);
	if (!i && !err)
		i = find_oldest(g, REUSEPORT_NOBODYS, NULL);
	if (!i)
		i = find_oldest(g, REUSEPORT_RESTING, &user);
	return i ? (int)i : err;
}

/* Makes a relay for m, which has none. */
static int open_relay(struct reuseport_group_member *m)
{
	int pair[2], err = relay_pair(pair);

	if (err)
		return err;
	m->relay_fd = pair[0];
	m->fd = pair[1];
	return 0;
}

int other_user_take(struct reuseport_group *g, uid_t user, const char **why)
{
	int i = choose_index(g, user, why), err;
	struct reuseport_group_member *m;

	if (i < 0)
		return i;
	m = &g->member[i];
	*why = "the broker adverbd lacks memory for a relay of datagrams: end "
	       "programs, or add memory";
	err = open_relay(m);
	if (err)
		return err;
	open_page(m, user);
	m->token = entropy();
	m->is_other_user = true;
	m->user = user;
	share_bytes(g, user);
	return i;
}

void other_user_sent(struct reuseport_group_member *m)
{
	close_fd(&m->fd);
}

void other_user_tick(struct reuseport_group *g,
		     struct reuseport_group_member *m, uint64_t now_ms)
{
	uint64_t rested = now_ms - m->freed_ms;

	if (m->use != REUSEPORT_RESTING && m->use != REUSEPORT_FREE)
		return;
	close_relay(g, m);
	if (rested >= STEER_USER_REST_MS && m->relay_fd < 0) {
		m->use = REUSEPORT_NOBODYS;
		close_fd(&m->page_fd);
	} else if (rested >= REUSEPORT_REST_MS) {
		m->use = REUSEPORT_FREE;
	}
}

void other_user_leave(struct reuseport_group *g,
		      struct reuseport_group_member *m)
{
	close_fd(&m->fd);
	close_relay(g, m);
	/* after a failure, open_page clears the page or makes a new one */
	if (m->page_fd >= 0)
		shared_page_end(m->page_fd, ++m->generation);
}

bool other_user_may_join(struct reuseport_group *g)
{
	struct reuseport_group_member *m = &g->member[g->count];

	if (g->count > STEER_CLASS_MAX || !is_free(m))
		return false;
	if (m->is_other_user)
		close_fd(&m->page_fd);
	m->is_other_user = false;
	return true;
}

void other_user_adopt(struct reuseport_group *g, uint64_t now_ms)
{
	for (uint32_t i = g->count; i <= STEER_CLASS_MAX; i++) {
		struct fd_store_entry e = g->fd_store.ledger->at[i];
		uint64_t freed_ms = e.freed_ms < now_ms ? e.freed_ms : now_ms;

		if (!e.is_owned && !e.freed_ms)
			continue;
		g->member[i] = (struct reuseport_group_member){
			.fd = -1,
			.page_fd = -1,
			.relay_fd = -1,
			.use = e.is_owned ? REUSEPORT_OWNED : REUSEPORT_RESTING,
			.is_other_user = true,
			.token = e.is_owned ? e.token : 0,
			.user = e.user,
			.freed_ms = e.is_owned ? 0 : freed_ms};
	}
}

int other_user_comes(struct reuseport_group *g,
		     struct reuseport_group_member *m, uint64_t token)
{
	int err;

	if (m->relay_fd >= 0 || !token || m->token != token)
		return -ESTALE;
	err = open_relay(m);
	if (!err)
		share_bytes(g, m->user);
	return err;
}
