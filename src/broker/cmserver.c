/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management for a network namespace or a host; see cmserver.h. */
#include "broker/cmserver.h"

#include "broker/cm_fields.h"
#include "broker/cmserver_call.h"
#include "broker/cmserver_object.h"
#include "broker/entropy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time in which the clients of a dead broker come back. */
#define SUCCESSION_NS 4000000000ull
#define HALF_OPEN     1024 /* unanswered requests of one sender */

/* Returns the client of c's user for which the most messages wait. */
static struct cmserver_client *find_longest_queue(struct cmserver *s,
						  struct cmserver_client *c)
{
	list_for_each (n, &s->clients) {
		struct cmserver_client *other =
			(struct cmserver_client *)(void *)n; /* link is first */

		if (other->share == c->share &&
		    other->output.waiting > c->output.waiting)
			c = other;
	}
	return c;
}

/*
 * Queues a message for a client.  The message is sent at the end of the loop's
 * turn, so that a client is woken once for all its messages of a turn.  If the
 * message cannot be queued, drops the longest queue among the clients of this
 * client's user, and tries again.  If that fails, too, drops this client's
 * queue.
 */
void cmserver_tell(struct cmserver *s, struct cmserver_client *c,
		   const struct cmproto *m)
{
	if (c->output.is_lost || cm_output_push(&c->output, m))
		return;
	cm_output_lose(&find_longest_queue(s, c)->output);
	if (!c->output.is_lost && !cm_output_push(&c->output, m))
		cm_output_lose(&c->output);
}

bool cmserver_has_output(const struct cmserver_client *c)
{
	return c->output.waiting > 0 || c->output.is_lost;
}

bool cmserver_lacks_memory(const struct cmserver_client *c)
{
	return c->output.lacks_memory;
}

bool cmserver_output(struct cmserver_client *c)
{
	return cm_output_send(&c->output);
}

/* Refuses a request, since the listener's client cannot take it. */
static void refuse_request(struct cmserver *s, const struct cm_event *e,
			   uint64_t now_ns)
{
	const struct cmmsg why = {.reason = CMMSG_REJ_NO_RESOURCES,
				  .status = CMMSG_SIDR_NO_QP};

	cm_reject(s->cm, e->id, &why, now_ns);
	cm_release(s->cm, e->id, now_ns);
}

/* Announces a request to the listener's client, and makes an object of this
 * client for the conversation. */
static void announce_event(struct cmserver *s, const struct cm_event *e,
			   uint64_t now_ns)
{
	struct cmserver_object *l = cmserver_object_find(s, (uint32_t)e->user),
			       *o;
	struct cmproto m = {.kind = CMPROTO_EVENT,
			    .event = CMPROTO_REQUEST,
			    .is_ib = s->wire.is_ib};

	if (!l || l->client->output.is_lost ||
	    cmserver_object_new(s, l->client, &o)) {
		refuse_request(s, e, now_ns);
		return;
	}
	o->conv = e->id;
	o->space = l->space;
	o->is_datagram = e->msg.kind == CMMSG_SIDR_REQ;
	cm_set_user(s->cm, e->id, cmserver_object_id(s, o));
	m.id = cmserver_object_id(s, l);
	m.new_id = cmserver_object_id(s, o);
	m.at.space = l->space;
	memcpy(m.at.local, e->local, 16);
	memcpy(m.at.peer, e->peer, 16);
	cm_fields_take(&m, &e->msg);
	cmserver_object_note(s, o, &m);
	cmserver_tell(s, l->client, &m);
}

static void report_event(struct cmserver *s, const struct cm_event *e)
{
	struct cmserver_object *o = cmserver_object_find(s, (uint32_t)e->user);
	struct cmproto m = {.kind = CMPROTO_EVENT, .is_ib = s->wire.is_ib};

	if (!o)
		return;
	m.id = cmserver_object_id(s, o);
	memcpy(m.at.local, e->local, 16);
	memcpy(m.at.peer, e->peer, 16);
	cm_fields_take(&m, &e->msg);
	switch (e->type) {
	case CM_REQUEST:
	case CM_STALE:
		return;
	case CM_RESPONSE:
		m.event = CMPROTO_RESPONSE;
		break;
	case CM_ESTABLISHED:
		m.event = CMPROTO_ESTABLISHED;
		break;
	case CM_REJECTED:
		m.event = CMPROTO_REJECTED;
		m.status = e->msg.reason;
		break;
	case CM_UNREACHABLE:
		m.event = CMPROTO_UNREACHABLE;
		m.status = -ETIMEDOUT;
		break;
	case CM_DISCONNECTED:
		m.event = CMPROTO_DISCONNECTED;
		m.status = e->msg.kind ? 0 : -ETIMEDOUT;
		break;
	case CM_TIMEWAIT_EXIT:
		m.event = CMPROTO_TIMEWAIT_EXIT;
		break;
	case CM_RESOLVED:
		m.event =
			e->msg.status ? CMPROTO_UNREACHABLE : CMPROTO_RESOLVED;
		m.status = e->msg.status;
		break;
	}
	cmserver_object_note(s, o, &m);
	cmserver_tell(s, o->client, &m);
}

/*
 * Notes a doubt about the peer whose REQ says that the peer has lost a
 * connection (cm_doubts.h).  Ignores such a REQ from an address of this host:
 * it is forged, since this server has both ends of a connection within this
 * host.  If the user already has its share of doubts, none is noted and the
 * connection stays.  A later REQ raises the doubt again.
 */
static void doubt_peer(struct cmserver *s, const struct cm_event *e)
{
	const struct cmserver_object *o =
		cmserver_object_find(s, (uint32_t)e->user);
	struct live_peer about = {.scope = e->scope, .qpn = e->msg.qp.qpn};

	if (!o || s->wire.is_own(s->wire.user, e->peer))
		return;
	memcpy(about.local, e->local, 16);
	memcpy(about.peer, e->peer, 16);
	cm_doubts_add(&s->doubts, o->client->share, &about);
}

bool cmserver_doubts(struct cmserver *s, struct live_peer *about)
{
	return cm_doubts_take(&s->doubts, about);
}

void cmserver_settle(struct cmserver *s, const struct live_peer *about)
{
	cm_doubts_settle(&s->doubts, about);
}

/* Empties the rings of cm: gives events to clients, and messages to QP1. */
static void flush_mads(struct cmserver *s, uint64_t now_ns)
{
	struct cm_frame f;
	struct cm_event e;

	/* Events come first, since announce_event may refuse a request: then
	 * cm_reject puts a message into the ring of messages. */
	while (cm_event(s->cm, &e)) {
		if (e.type == CM_REQUEST)
			announce_event(s, &e, now_ns);
		else if (e.type == CM_STALE)
			doubt_peer(s, &e);
		else
			report_event(s, &e);
	}
	while (cm_tx(s->cm, &f))
		s->wire.send(s->wire.user, &f);
}

void cmserver_receive(struct cmserver *s, const uint8_t from[16],
		      const uint8_t to[16], const struct cm_way *by,
		      const uint8_t *mad, uint64_t now_ns)
{
	cm_seed(s->cm, entropy());
	cm_rx(s->cm, from, to, by, mad, MAD_BYTES, now_ns);
	flush_mads(s, now_ns);
}

/* TAKEN, and RELEASE of an object, have no answer, since the client needs none.
 */
static bool has_answer(const struct cmproto *m)
{
	return m->kind != CMPROTO_TAKEN &&
	       (m->kind != CMPROTO_RELEASE || !m->id);
}

bool cmserver_handle(struct cmserver *s, struct cmserver_client *c,
		     const struct cmproto *m, size_t length, uint64_t now_ns)
{
	struct cmproto reply = {.kind = CMPROTO_DONE};

	if (c->output.is_lost)
		return c->output.waiting > 0;
	if (length != sizeof(*m) || m->version != CMPROTO_VERSION ||
	    m->private_bytes > CMPROTO_PRIVATE)
		return false;
	cm_seed(s->cm, entropy());
	reply.serial = m->serial;
	reply.err = cmserver_call(s, c, m, now_ns, &reply);
	if (has_answer(m))
		cmserver_tell(s, c, &reply);
	flush_mads(s, now_ns);
	return !c->output.is_lost || c->output.waiting > 0;
}

struct cmserver_client *cmserver_client_new(struct cmserver *s, int fd,
					    uid_t user, pid_t pid)
{
	struct cmserver_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->share = share_get(&s->shares, user);
	if (!c->share) {
		free(c);
		return NULL;
	}
	list_init(&c->link);
	list_push_tail(&s->clients, &c->link);
	cm_output_init(&c->output, fd, c->share);
	c->process = fd_store_owner(user, pid);
	list_init(&c->own);
	return c;
}

void cmserver_client_free(struct cmserver *s, struct cmserver_client *c,
			  uint64_t now_ns)
{
	c->is_gone = true;
	while (!list_is_empty(&c->own)) {
		cmserver_object_free(
			s, (struct cmserver_object *)(void *)c->own.next,
			now_ns);
		/* cm may have put messages into its rings, which are short */
		flush_mads(s, now_ns);
	}
	cm_output_fini(&c->output);
	list_remove(&c->link);
	share_put(&s->shares, c->share);
	free(c);
}

struct cmserver *cmserver_new(const struct cmserver_wire *wire,
			      struct fd_store *fd_store, uint64_t now_ns)
{
	const struct cm_config config = {.seed = entropy(),
					 .conversations = CMSERVER_OBJECTS,
					 .half_open = HALF_OPEN};
	struct cmserver *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->wire = *wire;
	share_table_init(&s->shares, geteuid());
	list_init(&s->clients);
	cm_journal_init(&s->cm_journal, fd_store);
	s->cm = cm_new(&config, now_ns);
	s->ports = ports_new(CMSERVER_OBJECTS);
	if (!s->cm || !s->ports || !cm_seal_init(&s->seal, fd_store, now_ns)) {
		cmserver_free(s);
		return NULL;
	}
	return s;
}

/* Releases the inherited conversations of the process pid, which has ended; pid
 * 0: those of all processes that have ended.  If there is no memory, their
 * peers are not told. */
static void release_inherited(struct cmserver *s, pid_t pid, uint64_t now_ns)
{
	struct cm_journal_search search = {0};
	struct fd_store_record left;

	while (cm_journal_next(&s->cm_journal, &search, pid, &left)) {
		struct user_share *share =
			share_get(&s->shares, (uid_t)left.owner.user);

		if (!share)
			continue;
		cm_note_release(s->cm, &share->cm, &left.note, now_ns);
		share_put(&s->shares, share);
		flush_mads(s, now_ns);
	}
}

void cmserver_succeed(struct cmserver *s, uint64_t now_ns)
{
	struct cm_note note;

	cm_expect_listeners(s->cm, now_ns + SUCCESSION_NS);
	cm_journal_inherit(&s->cm_journal);
	/* clients may have resumed conversations before the fd store came */
	for (uint32_t i = 0; i < s->fresh; i++) {
		struct cmserver_object *o = &s->object[i];

		if (!o->client || !o->conv)
			continue;
		cm_journal_take(&s->cm_journal, o->conv);
		cm_note_make(s->cm, o->conv, &note);
		cm_journal_write(&s->cm_journal, i, &o->client->process, &note);
	}
	release_inherited(s, 0, now_ns);
}

bool cmserver_awaits(const struct cmserver *s, pid_t pid)
{
	return cm_journal_has(&s->cm_journal, pid);
}

void cmserver_process_ended(struct cmserver *s, pid_t pid, uint64_t now_ns)
{
	if (pid > 0)
		release_inherited(s, pid, now_ns);
}

void cmserver_free(struct cmserver *s)
{
	if (s->cm)
		cm_free(s->cm);
	if (s->ports)
		ports_free(s->ports);
	share_table_fini(&s->shares);
	cm_journal_fini(&s->cm_journal);
	free(s);
}

bool cmserver_has_ended(struct cmserver *s, uid_t user, const uint8_t peer[16],
			uint32_t qpn)
{
	const struct user_share *share = share_find(&s->shares, user);

	return share && !share->cm.is_many &&
	       cm_has_ended(s->cm, &share->cm, peer, qpn);
}

bool cmserver_has_peer(struct cmserver *s, struct cmserver *peers,
		       const struct live_peer *about)
{
	return cm_has_peer(s->cm, peers->cm, about->peer, about->qpn);
}

void cmserver_stale(struct cmserver *s, const struct live_peer *about,
		    uint64_t now_ns)
{
	cm_stale(s->cm, about->peer, about->qpn, now_ns);
	flush_mads(s, now_ns);
}

void cmserver_tick(struct cmserver *s, uint64_t now_ns)
{
	cm_tick(s->cm, now_ns);
	flush_mads(s, now_ns);
}

uint64_t cmserver_deadline(const struct cmserver *s)
{
	return cm_deadline(s->cm);
}

bool cmserver_is_busy(const struct cmserver *s)
{
	return cm_count(s->cm) > 0;
}
