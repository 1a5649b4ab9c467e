/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/answer.h"

#include "broker/shared_page.h"
#include "broker/procfs.h"
#include "broker/user.h"
#include "encap/rocev2.h"
#include "engine/credit.h"
#include "util/user_map.h"
#include "wire/port.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_DOUBT UINT64_MAX /* the asker is cmserver, not a client */
/* For how long a client is answered PROTO_ARENA_LATER because too many
 * descriptors are under way.  If many clients start at once, they have read
 * their messages within this time. */
#define FULL_MS 2000

int answer_send(const struct conn *c, const struct proto *question,
		struct proto *m, const int *fds)
{
	m->magic = PROTO_MAGIC;
	m->version = PROTO_VERSION;
	m->serial = question->serial;
	return proto_send(c->fd, m, fds);
}

void answer_refuse(const struct conn *c, const struct proto *question, int err,
		   const char *why)
{
	struct proto m = {.kind = PROTO_REFUSED, .value = (uint32_t)err};

	snprintf(m.why, sizeof(m.why), "%s", why);
	answer_send(c, question, &m, NULL);
}

static void introduce_broker(const struct server *s, const struct conn *c,
			     const struct proto *question, struct proto *m)
{
	uint64_t idle_s = s->idle_ms / 1000;

	if (idle_s > PROTO_IDLE_NEVER)
		idle_s = PROTO_IDLE_NEVER;
	if (s->is_thread)
		idle_s = UINT32_MAX;
	proto_introduce(m, (uint32_t)idle_s);
	answer_send(c, question, m, NULL);
}

void answer_who(const struct server *s, const struct conn *c,
		const struct proto *m)
{
	struct proto reply = {.kind = PROTO_WHO_IS};

	introduce_broker(s, c, m, &reply);
}

void answer_version(const struct server *s, const struct conn *c,
		    const struct proto *m)
{
	struct proto reply = {.kind = PROTO_REFUSED, .value = EPROTONOSUPPORT};

	snprintf(reply.why, sizeof(reply.why),
		 "the broker is of another version of adverb");
	introduce_broker(s, c, m, &reply);
}

/* Returns whether the owner of the page says there that the queue pair qpn
 * drops all packets; false if page_fd is -1. */
static bool page_is_closed(int page_fd, uint32_t qpn)
{
	struct closed closed;

	return shared_page_copy(page_fd, offsetof(struct credit_page, closed),
				sizeof(closed), &closed) &&
	       closed_has(&closed, qpn);
}

/* If the queue pair's process is of another user than the asker, the answer
 * says only whether that process lives, and not which QPNs it has in use. */
static enum proto_peer peer_state(const struct server *s, uint32_t qpn,
				  uid_t asker)
{
	uint32_t class = steer_class(qpn);
	const struct reuseport_group_member *m =
		reuseport_group_at(&s->group, class);

	if (!class || class > STEER_CLASS_MAX)
		return PROTO_PEER_UNKNOWN;
	if (!m || m->use != REUSEPORT_OWNED)
		return PROTO_PEER_GONE;
	return user_is_same(asker, m->user) && page_is_closed(m->page_fd, qpn)
		       ? PROTO_PEER_CLOSED
		       : PROTO_PEER_ALIVE;
}

void answer_peer(const struct server *s, const struct conn *c,
		 const struct proto *m)
{
	struct proto reply = {.kind = PROTO_ANSWER,
			      .value = peer_state(s, m->value, c->user),
			      .about = m->value};

	answer_send(c, m, &reply, NULL);
}

enum livemsg_state answer_state(void *user, uint32_t qpn)
{
	const struct server *s = user;

	if (!s->group.count)
		return LIVEMSG_UNKNOWN;
	switch (peer_state(s, qpn, s->group.user)) {
	case PROTO_PEER_GONE:
		return LIVEMSG_GONE;
	case PROTO_PEER_ALIVE:
		return LIVEMSG_ALIVE;
	case PROTO_PEER_CLOSED:
		return LIVEMSG_CLOSED;
	case PROTO_PEER_UNKNOWN:
	case PROTO_PEER_LEFT:
		break;
	}
	return LIVEMSG_UNKNOWN;
}

static enum proto_peer peer_state_of(enum livemsg_state state)
{
	switch (state) {
	case LIVEMSG_GONE:
		return PROTO_PEER_GONE;
	case LIVEMSG_ALIVE:
		return PROTO_PEER_ALIVE;
	case LIVEMSG_CLOSED:
		return PROTO_PEER_CLOSED;
	case LIVEMSG_UNKNOWN:
		break;
	}
	return PROTO_PEER_UNKNOWN;
}

static void tell_remote_state(const struct conn *c,
			      const struct live_peer *about,
			      enum proto_peer state)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_ANSWER,
			  .value = state,
			  .about = about->qpn};

	memcpy(m.peer, about->peer, 16);
	proto_send(c->fd, &m, NULL);
}

/* May the user of c ask one more question about another host?  The broker's own
 * user always may.  Another user may if it has fewer open questions than there
 * are free places.  The LIVE_OF_ONE places that are kept for connection
 * management do not count as free. */
static bool may_ask(const struct server *s, const struct conn *c)
{
	const uint32_t most = LIVE_QUESTIONS - LIVE_OF_ONE;
	uint32_t has = 0, all = 0;

	if (user_is_same(c->user, s->group.user))
		return true;
	for (uint32_t i = 0; i < s->conns; i++) {
		all += s->conn[i].questions;
		if (s->conn[i].user == c->user)
			has += s->conn[i].questions;
	}
	return all < most && has < most - all;
}

void answer_remote(struct server *s, struct conn *c, const struct proto *m,
		   uint64_t now_ns)
{
	struct live_peer about = {.qpn = m->value, .scope = m->scope};

	memcpy(about.local, m->local, 16);
	memcpy(about.peer, m->peer, 16);
	if (cmserver_has_ended(s->cm, c->user, about.peer, about.qpn)) {
		tell_remote_state(c, &about, PROTO_PEER_LEFT);
		return;
	}
	if (!c->name)
		c->name = ++s->names;
	if (may_ask(s, c) &&
	    remote_liveness_ask(s->remote_liveness, c->name, &about, now_ns))
		c->questions++;
	else
		tell_remote_state(c, &about, PROTO_PEER_UNKNOWN);
}

static void tell_asker(struct server *s, const struct live_answer *a)
{
	for (uint32_t i = 0; i < s->conns; i++) {
		struct conn *c = &s->conn[i];

		if (c->name != a->asker)
			continue;
		c->questions--;
		if (c->fd >= 0)
			tell_remote_state(c, &a->about,
					  peer_state_of(a->state));
	}
}

/* Ends the connection of a doubted peer, unless the peer's host says that the
 * peer's queue pair lives.  If the host does not answer, the REQ that raised
 * the doubt is believed (IBTA 12.9.8.3.1). */
static void answer_doubt(struct server *s, const struct live_answer *a,
			 uint64_t now_ns)
{
	if (a->state != LIVEMSG_ALIVE)
		cmserver_stale(s->cm, &a->about, now_ns);
	cmserver_settle(s->cm, &a->about);
}

void answer_remote_all(struct server *s, uint64_t now_ns)
{
	struct live_peer about;
	struct live_answer a;

	while (cmserver_doubts(s->cm, &about))
		if (!remote_liveness_ask(s->remote_liveness, ANSWER_DOUBT,
					 &about, now_ns))
			cmserver_settle(s->cm, &about);
	while (remote_liveness_answer(s->remote_liveness, &a))
		if (a.asker == ANSWER_DOUBT)
			answer_doubt(s, &a, now_ns);
		else
			tell_asker(s, &a);
}

void answer_page(const struct server *s, const struct conn *c,
		 const struct proto *m)
{
	struct proto reply = {.kind = PROTO_PAGE_IS, .value = m->value};
	const struct reuseport_group_member *owner =
		reuseport_group_at(&s->group, m->value);
	int fd = -ENOENT;

	/* A page shows some QPNs of its owner (closed.h), and how much the
	 * owner sends and receives: no other user may read the page. */
	if (owner && owner->use == REUSEPORT_OWNED &&
	    user_is_same(c->user, owner->user))
		fd = shared_page_reader(owner->page_fd);

	if (fd >= 0)
		reply.brings = PROTO_FD_PAGE;
	if (answer_send(c, m, &reply, &fd) == -ETOOMANYREFS) {
		/* Without an answer the question would stay open at the client,
		 * which would never ask again (peer_pages.h). */
		reply.brings = 0;
		answer_send(c, m, &reply, NULL);
	}
	if (fd >= 0)
		close(fd);
}

/* Returns the client that has the class; NULL: there is none. */
static const struct conn *owner_of(const struct server *s, uint32_t class)
{
	for (uint32_t i = 0; class && i < s->conns; i++)
		if (s->conn[i].class == class)
			return &s->conn[i];
	return NULL;
}

void answer_arena(struct server *s, struct conn *c, const struct proto *m,
		  uint64_t now_ms)
{
	struct proto reply = {.kind = PROTO_ARENA_IS,
			      .value = m->value,
			      .about = PROTO_ARENA_NONE};
	const struct conn *owner = owner_of(s, m->value);
	const int *wake_fd = owner ? &owner->peer_wake_fd : NULL;

	if (!owner)
		reply.about = PROTO_ARENA_GONE;
	if (owner && user_is_same(owner->user, c->user) && owner->fd < 0)
		reply.about = PROTO_ARENA_LATER;
	if (owner && user_is_same(owner->user, c->user) && *wake_fd >= 0) {
		reply.about = PROTO_ARENA_HERE;
		reply.arena = owner->arena;
		reply.brings = PROTO_FD_WAKE;
		c->access_of[m->value / 64] |= 1ull << m->value % 64;
	}
	if (!answer_send(c, m, &reply, wake_fd)) {
		if (reply.brings)
			c->full_ms = 0;
		return;
	}
	if (!reply.brings)
		return;
	/* The descriptor could not be sent, for example because too many are
	 * under way (ETOOMANYREFS).  The client asks again, until no descriptor
	 * could be sent for FULL_MS.  If full_ms is 2 * FULL_MS ago or more, it
	 * is that of earlier questions, and the time begins anew. */
	if (!c->full_ms || now_ms - c->full_ms >= 2 * FULL_MS)
		c->full_ms = now_ms;
	reply.about = now_ms - c->full_ms < FULL_MS ? PROTO_ARENA_LATER
						    : PROTO_ARENA_NONE;
	reply.brings = 0;
	answer_send(c, m, &reply, NULL);
}

/*
 * Does the process of a class, or another process of its user, have the source
 * port?  Only the sockets of the SO_REUSEPORT group send from port 4791, and a
 * process to which the broker relays datagrams has no such socket.
 */
static bool is_source_of(const struct server *s, uint32_t class,
			 const struct inaddr *from, const struct inaddr *to)
{
	const struct conn *owner = owner_of(s, class);
	const struct reuseport_group_member *member =
		reuseport_group_at(&s->group, class);
	uid_t user;

	if (!owner || !from->port || !member || member->use != REUSEPORT_OWNED)
		return false;
	if (from->port == ROCEV2_PORT)
		return !member->is_other_user && member->relay_fd < 0;
	if (port_owner(from, to, &user) != PORT_USER || !user_map_is_one(user))
		return false;
	/* The process may have become another user since it connected. */
	return user == owner->user || procfs_acts_as(owner->pid, user);
}

void answer_source(const struct server *s, const struct conn *c,
		   const struct proto *m)
{
	struct proto reply = {
		.kind = PROTO_SOURCE_IS, .value = m->value, .about = m->about};
	struct inaddr from = {.port = (uint16_t)m->about};
	struct inaddr to = {.port = ROCEV2_PORT};

	memcpy(from.ip, m->local, 16);
	memcpy(to.ip, m->peer, 16);
	memcpy(reply.local, m->local, 16);
	memcpy(reply.peer, m->peer, 16);
	reply.scope = m->value <= STEER_CLASS_MAX &&
		      is_source_of(s, m->value, &from, &to);
	answer_send(c, m, &reply, NULL);
}
