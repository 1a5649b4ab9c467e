/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/other_user.h"

#include "broker/shared_page.h"
#include "broker/user.h"
#include "wire/relay.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Its first page, or the one of its user's last process, zeroed. */
static void open_page(struct reuseport_group_member *m, uid_t user)
{
	if (m->is_foreign && m->page_fd >= 0 && user_is_same(user, m->user)) {
		shared_page_clear(m->page_fd, ++m->generation);
		return;
	}
	if (m->is_foreign)
		close_fd(&m->page_fd);
	m->page_fd = shared_page_new();
	m->generation = 0;
}

/* Whoever cannot be told from others is counted as one with them. */
static int refuse_more(const struct reuseport_group *g, uid_t user,
		       const char **why)
{
	static char text[96];
	uint32_t has = 0, left = 0;

	for (uint32_t i = g->count; i <= STEER_CLASS_MAX; i++) {
		const struct reuseport_group_member *m = &g->member[i];

		has += !is_free(m) && m->user == user;
		left += is_free(m);
	}
	if (has < left)
		return 0;
	snprintf(text, sizeof(text),
		 "this user has %u RDMA processes, its share of port 4791: end "
		 "some",
		 has);
	*why = left ? text : "every steering class of port 4791 is taken";
	return -ENOSPC;
}

int other_user_take(struct reuseport_group *g, uid_t user, const char **why)
{
	uint32_t i = STEER_CLASS_MAX;
	struct reuseport_group_member *m;
	int pair[2], err = refuse_more(g, user, why);

	if (err)
		return err;
	while (!is_free(&g->member[i]))
		i--;
	m = &g->member[i];
	*why = "no descriptor is left to hand datagrams on";
	err = relay_pair(pair);
	if (err)
		return err;
	open_page(m, user);
	m->relay_fd = pair[0];
	m->fd = pair[1];
	m->is_foreign = true;
	return (int)i;
}

void other_user_leave(struct reuseport_group_member *m)
{
	close_fd(&m->fd);
	close_fd(&m->relay_fd);
	if (m->page_fd >= 0)
		shared_page_clear(m->page_fd, ++m->generation);
}

bool other_user_may_join(struct reuseport_group *g)
{
	struct reuseport_group_member *m = &g->member[g->count];

	if (g->count > STEER_CLASS_MAX || !is_free(m))
		return false;
	if (m->is_foreign)
		close_fd(&m->page_fd);
	m->is_foreign = false;
	return true;
}

static uint64_t cookie_of(int fd)
{
	uint64_t value = 0;
	socklen_t length = sizeof(value);

	getsockopt(fd, SOL_SOCKET, SO_COOKIE, &value, &length);
	return value;
}

uint64_t other_user_cookie(const struct reuseport_group_member *m)
{
	return m->is_foreign ? cookie_of(m->relay_fd) : 0;
}

void other_user_adopt(struct reuseport_group *g)
{
	for (uint32_t i = g->count; i <= STEER_CLASS_MAX; i++) {
		struct fd_store_entry e = g->fd_store.ledger->at[i];

		if (e.is_owned)
			g->member[i] = (struct reuseport_group_member){
				.fd = -1,
				.page_fd = -1,
				.relay_fd = -1,
				.use = REUSEPORT_OWNED,
				.is_foreign = true,
				.user = e.user};
	}
}

bool other_user_comes(struct reuseport_group_member *m, uint64_t cookie,
		      int *relay_fd)
{
	if (m->relay_fd >= 0 || *relay_fd < 0 || !cookie ||
	    cookie_of(*relay_fd) != cookie)
		return false;
	m->relay_fd = *relay_fd;
	*relay_fd = -1;
	return true;
}
