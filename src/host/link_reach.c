/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/link_reach.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/fd_check.h"
#include "broker/shared_page.h"
#include "host/local_peer.h"

static bool is_same(const struct link_reach_about *a,
		    const struct link_reach_about *b)
{
	const struct reach *x = &a->packets, *y = &b->packets;

	return a->qpn == b->qpn && a->port == b->port &&
	       a->since_ns == b->since_ns && x->dest_qpn == y->dest_qpn &&
	       x->dlid == y->dlid && x->pkey_index == y->pkey_index &&
	       x->sl == y->sl && x->path_bits == y->path_bits &&
	       x->mtu == y->mtu && x->has_grh == y->has_grh &&
	       !memcmp(x->sgid, y->sgid, 16) && !memcmp(x->dgid, y->dgid, 16);
}

/* Returns a slot for a new question: a free one, or one whose answer was not
 * fetched, for example because its queue pair has gone or has another path.  If
 * that queue pair still wants the answer, it asks again.  NULL: none. */
static struct link_reach_question *free_slot(struct link_reach *r)
{
	struct link_reach_question *slot = NULL;

	for (uint32_t i = 0; i < LINK_REACH_MAX; i++)
		if (r->all[i].state == LINK_REACH_FREE)
			return &r->all[i];
		else if (r->all[i].state == LINK_REACH_DONE)
			slot = &r->all[i];
	return slot;
}

static struct link_reach_question *
find_question(struct link_reach *r, const struct link_reach_about *about)
{
	for (uint32_t i = 0; i < LINK_REACH_MAX; i++)
		if (r->all[i].state != LINK_REACH_FREE &&
		    is_same(&r->all[i].about, about))
			return &r->all[i];
	return NULL;
}

enum link_reach_is link_reach_get(struct link_reach *r,
				  const struct link_reach_about *about,
				  struct fabric_reached *reached)
{
	struct link_reach_question *q = find_question(r, about);

	if (!q) {
		q = free_slot(r);
		if (q)
			*q = (struct link_reach_question){
				.state = LINK_REACH_WAITS, .about = *about};
		return LINK_REACH_ASKED;
	}
	if (q->state != LINK_REACH_DONE)
		return LINK_REACH_ASKED;
	q->state = LINK_REACH_FREE;
	if (!q->is_yes)
		return LINK_REACH_NO;
	*reached = q->reached;
	return LINK_REACH_YES;
}

bool link_reach_want_arena(struct link_reach *r, uint32_t program)
{
	if (r->arena_count == LINK_REACH_ARENAS)
		return false;
	r->arenas[r->arena_count++] = program;
	return true;
}

static bool ask_arena(struct link_reach *r, struct fabric_proto *m)
{
	if (!r->arena_count)
		return false;
	m->kind = FABRIC_PROTO_ARENA;
	m->number = r->arenas[0];
	r->arena_count--;
	memmove(r->arenas, r->arenas + 1, r->arena_count * sizeof(*r->arenas));
	return true;
}

bool link_reach_ask(struct link_reach *r, struct fabric_proto *m)
{
	for (uint32_t i = 0; i < LINK_REACH_MAX; i++) {
		struct link_reach_question *q = &r->all[i];

		if (q->state != LINK_REACH_WAITS)
			continue;
		q->state = LINK_REACH_OPEN;
		m->kind = FABRIC_PROTO_REACH;
		m->number = q->about.port;
		m->reach = q->about.packets;
		return true;
	}
	return ask_arena(r, m);
}

void link_reach_answered(struct link_reach *r,
			 const struct fabric_reached *reached)
{
	for (uint32_t i = 0; i < LINK_REACH_MAX; i++) {
		struct link_reach_question *q = &r->all[i];

		if (q->state != LINK_REACH_OPEN)
			continue;
		q->state = LINK_REACH_DONE;
		q->is_yes = reached;
		if (reached)
			q->reached = *reached;
		local_peer_note_news();
		return;
	}
}

const shared_u32 *link_reach_map(int fd)
{
	void *page = shared_page_map(fd, PROT_READ);

	if (page)
		madvise(page, SHARED_PAGE_BYTES, MADV_DONTFORK);
	return page;
}

bool link_reach_is_sound(const struct fabric_reached *r)
{
	return r->program && r->program <= DATA_NUMBER_MAX && r->peer.slid &&
	       r->peer.pkeys;
}

enum client_arena link_reach_judge_arena(const struct fabric_proto *m, int err,
					 int fd)
{
	if (err)
		return err == -ESRCH ? CLIENT_ARENA_GONE : CLIENT_ARENA_LATER;
	/* this process had no room for the descriptor */
	if (fd < 0)
		return CLIENT_ARENA_LATER;
	return m->arena.pid && fd_check_is_wake(fd) ? CLIENT_ARENA_HERE
						    : CLIENT_ARENA_NONE;
}

void link_reach_give_arena(const struct fabric_proto *m, int err, int fd)
{
	const struct client_news news = {
		.what = CLIENT_NEWS_ARENA,
		.class = m->number,
		.arena = link_reach_judge_arena(m, err, fd),
		.arena_at = {m->arena.pid_space, m->arena.pid, m->arena.fd},
		.peer_wake_fd = fd};

	if (fd >= 0 && news.arena != CLIENT_ARENA_HERE)
		close(fd);
	local_peer_answered(&news);
}

struct fabric_arena link_reach_arena(int fd)
{
	return (struct fabric_arena){proto_pid_space(), (uint32_t)getpid(), fd};
}
