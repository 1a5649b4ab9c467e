/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management for a network namespace or a host; see cmserver.h. */
#include "broker/cmserver.h"

#include "broker/cm_doubts.h"
#include "broker/cm_fields.h"
#include "broker/cm_journal.h"
#include "broker/cm_output.h"
#include "broker/cm_seal.h"
#include "broker/entropy.h"
#include "broker/procfs.h"
#include "broker/share.h"

#include "cm/cm.h"
#include "cm/ports.h"
#include "util/check.h"
#include "util/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time in which the clients of a dead broker come back. */
#define SUCCESSION_NS 4000000000ull
#define OBJECTS	      FD_STORE_RECORDS
/* Users other than the broker's own get objects only while there are fewer than
 * this: as many as ephemeral ports, since each object may have such a port. */
#define SHARED_OBJECTS (PORTS_EPHEMERAL_LAST - PORTS_EPHEMERAL_FIRST + 1)
#define CLIENT_MAX     16384 /* objects of one client */
#define HALF_OPEN      1024  /* unanswered requests of one sender */
#define BACKLOG_MAX    1024
/* how long a request for a listener that has ended is held, since the program
 * may listen again */
#define AGAIN_NS     2000000000u
#define NONE	     UINT32_MAX
#define GENERATIONS  16 /* bits of the index, which are below the generation */
#define INDEX_OF(id) ((id) & ((1u << GENERATIONS) - 1))

struct cmserver_client {
	struct list link; /* in the server's list of clients */
	struct user_share *share;
	struct cm_output output;
	struct fd_store_entry process;
	bool is_gone;	  /* set while cmserver_client_free frees its objects */
	uint32_t objects; /* how many `own` has */
	struct list own;  /* its objects */
};

struct object {
	struct list link;		/* in its client's `own` */
	struct cmserver_client *client; /* NULL: the object is free */
	uint16_t generation;
	uint16_t space, port;
	struct cm_where where; /* the addresses that the port is bound to */
	/* binding: the number of the bound port in `ports`; listener: the
	 * number of the listener in `cm`; NONE: there is none */
	uint32_t binding, listener;
	uint32_t conv; /* a conversation's id; 0: it has none */
	bool is_datagram;
};

struct cmserver {
	struct cmserver_wire wire;
	struct share_table shares;
	struct list clients;
	struct cm *cm;
	struct ports *ports;
	struct cm_journal cm_journal; /* slot k is that of object[k] */
	struct cm_seal seal;
	struct object object[OBJECTS];
	/* how many entries of object[] were ever used, and how many of them are
	 * free now: their indexes are in free_list */
	uint32_t fresh, free_count;
	uint32_t free_list[OBJECTS];
	struct cm_doubts doubts;
};

/* Returns the client of c's user for which the most messages wait. */
static struct cmserver_client *slowest_client(struct cmserver *s,
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
 * message cannot be queued, the slowest client of the user loses its messages.
 */
static void tell_client(struct cmserver *s, struct cmserver_client *c,
			const struct cmproto *m)
{
	if (c->output.is_lost || cm_output_push(&c->output, m))
		return;
	cm_output_lose(&slowest_client(s, c)->output);
	if (!c->output.is_lost && !cm_output_push(&c->output, m))
		cm_output_lose(&c->output);
}

void cmserver_answer(struct cmserver *s, struct cmserver_client *c,
		     const struct cmproto *m)
{
	tell_client(s, c, m);
}

bool cmserver_has_output(const struct cmserver_client *c)
{
	return c->output.waiting > 0 || c->output.is_lost;
}

bool cmserver_output(struct cmserver_client *c)
{
	return cm_output_send(&c->output);
}

/* Returns 0 if the client may have another object; -EDQUOT: the client's user
 * has used up its share; -ENOMEM: the client, or all clients together, have as
 * many objects as there may be. */
static int may_have_object(const struct cmserver *s,
			   const struct cmserver_client *c)
{
	const struct user_share *share = c->share;
	uint32_t used = s->fresh - s->free_count;
	uint32_t limit = share->cm.is_exempt ? OBJECTS : SHARED_OBJECTS;

	if (c->objects == CLIENT_MAX)
		return -ENOMEM;
	return cm_owner_may_add(&share->cm, share->objects,
				used < limit ? limit - used : 0);
}

static int object_new(struct cmserver *s, struct cmserver_client *c,
		      struct object **made)
{
	int err = may_have_object(s, c);
	uint16_t generation;
	struct object *o;

	if (err)
		return err;
	o = &s->object[s->free_count ? s->free_list[--s->free_count]
				     : s->fresh++];
	/* the generation is never 0: with index 0 the id would be 0, which
	 * names no object */
	generation = (uint16_t)(o->generation % UINT16_MAX + 1);
	*o = (struct object){.client = c,
			     .generation = generation,
			     .binding = NONE,
			     .listener = NONE};
	list_init(&o->link);
	list_push_tail(&c->own, &o->link);
	c->objects++;
	c->share->objects++;
	*made = o;
	return 0;
}

static uint32_t id_of(const struct cmserver *s, const struct object *o)
{
	return (uint32_t)o->generation << GENERATIONS |
	       (uint32_t)(o - s->object);
}

static struct object *object_find(struct cmserver *s, uint32_t id)
{
	struct object *o =
		INDEX_OF(id) < OBJECTS ? &s->object[INDEX_OF(id)] : NULL;

	return o && o->client && id_of(s, o) == id ? o : NULL;
}

static void object_free(struct cmserver *s, struct object *o, uint64_t now_ns)
{
	CHECK(o->client);
	/* an object without a conversation has written no record: the record in
	 * its slot may be one of an earlier broker */
	if (o->conv)
		cm_journal_write(&s->cm_journal, INDEX_OF(id_of(s, o)),
				 &o->client->process, &(struct cm_note){0});
	if (o->listener != NONE)
		cm_unlisten(s->cm, o->listener,
			    o->client->is_gone ? 0 : now_ns + AGAIN_NS);
	if (o->binding != NONE)
		ports_unbind(s->ports, o->binding);
	if (o->conv)
		cm_release(s->cm, o->conv, now_ns);
	list_remove(&o->link);
	o->client->objects--;
	o->client->share->objects--;
	o->client = NULL;
	s->free_list[s->free_count++] = (uint32_t)(o - s->object);
}

/* Puts the conversation's note into a message to the object's client, which
 * gives it to a successor, and into the journal. */
static void put_note(struct cmserver *s, const struct object *o,
		     struct cmproto *m)
{
	struct cm_note note;

	if (!o->conv)
		return;
	cm_note_make(s->cm, o->conv, &note);
	cm_journal_write(&s->cm_journal, INDEX_OF(id_of(s, o)),
			 &o->client->process, &note);
	cm_seal_write(&s->seal, &note, m->note);
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
	struct object *l = object_find(s, (uint32_t)e->user), *o;
	struct cmproto m = {.kind = CMPROTO_EVENT,
			    .event = CMPROTO_REQUEST,
			    .is_ib = s->wire.is_ib};

	if (!l || l->client->output.is_lost || object_new(s, l->client, &o)) {
		refuse_request(s, e, now_ns);
		return;
	}
	o->conv = e->id;
	o->space = l->space;
	o->is_datagram = e->msg.kind == CMMSG_SIDR_REQ;
	cm_set_user(s->cm, e->id, id_of(s, o));
	m.id = id_of(s, l);
	m.new_id = id_of(s, o);
	m.at.space = l->space;
	memcpy(m.at.local, e->local, 16);
	memcpy(m.at.peer, e->peer, 16);
	cm_fields_take(&m, &e->msg);
	put_note(s, o, &m);
	tell_client(s, l->client, &m);
}

static void report_event(struct cmserver *s, const struct cm_event *e)
{
	struct object *o = object_find(s, (uint32_t)e->user);
	struct cmproto m = {.kind = CMPROTO_EVENT, .is_ib = s->wire.is_ib};

	if (!o)
		return;
	m.id = id_of(s, o);
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
	put_note(s, o, &m);
	tell_client(s, o->client, &m);
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
	const struct object *o = object_find(s, (uint32_t)e->user);
	struct live_peer about = {.qpn = e->msg.qp.qpn};

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

	/* events first, since an event may put a message into the other ring at
	 * once */
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
		      const uint8_t to[16], uint32_t scope, const uint8_t *mad,
		      uint64_t now_ns)
{
	cm_seed(s->cm, entropy());
	cm_rx(s->cm, from, to, scope, mad, MAD_BYTES, now_ns);
	flush_mads(s, now_ns);
}

/* The requests of clients.  Each function returns 0 or -errno, and fills the
 * reply. */

/* May the client's process bind the port (0: any port)?  If that process has
 * ended, another process may have its pid by now; their start times tell the
 * two processes apart. */
static bool may_bind(const struct cmserver_client *c, uint16_t port)
{
	const struct fd_store_entry *e = &c->process;
	struct procfs_stat now;

	return !port || (procfs_may_bind(e->pid, (uid_t)e->user, port) &&
			 (!e->pid || (procfs_look(e->pid, &now) &&
				      now.start == e->start)));
}

static int do_bind(struct cmserver *s, struct cmserver_client *c,
		   const struct cmproto *m, struct cmproto *reply)
{
	struct ports_want want = {.space = m->at.space,
				  .port = m->at.local_port,
				  .where.any_v4 = m->any_v4,
				  .where.any_v6 = m->any_v6,
				  .where.only_own = m->only_own,
				  .may_share = m->may_share};
	struct object *o;
	int err;

	if (!may_bind(c, m->at.local_port))
		return -EACCES;
	err = object_new(s, c, &o);
	if (err)
		return err;
	memcpy(want.where.ip, m->at.local, 16);
	err = ports_bind(s->ports, &want, (uint32_t)entropy(), &o->binding,
			 &o->port);
	if (err) {
		o->binding = NONE;
		object_free(s, o, 0);
		return err;
	}
	o->space = m->at.space;
	o->where = want.where;
	o->is_datagram = m->is_datagram;
	reply->new_id = id_of(s, o);
	reply->at.local_port = o->port;
	return 0;
}

static int do_listen(struct cmserver *s, struct object *o,
		     const struct cmproto *m)
{
	uint32_t backlog = m->backlog && m->backlog < BACKLOG_MAX ? m->backlog
								  : BACKLOG_MAX;
	int err;

	if (o->listener != NONE || o->conv || o->binding == NONE)
		return -EINVAL;
	err = ports_listen(s->ports, o->binding);
	if (err)
		return err;
	err = cm_listen(s->cm, &o->client->share->cm, id_of(s, o),
			cmmsg_service_id(o->space, o->port), &o->where, backlog,
			&o->listener);
	if (err)
		ports_unlisten(s->ports, o->binding);
	return err;
}

static int do_connect(struct cmserver *s, struct object *o,
		      const struct cmproto *m, uint64_t now_ns)
{
	struct cm_start start = {.owner = &o->client->share->cm,
				 .user = id_of(s, o),
				 .id = m->call_id,
				 .transaction_id = m->call_transaction,
				 .strict = m->is_strict,
				 .scope = m->at.scope};
	struct cmmsg *msg = &start.msg;
	struct cmmsg_ip ip = {.src_port = o->port};
	size_t head = m->is_ib ? 0 : CMMSG_IP_BYTES;

	if (o->listener != NONE || o->conv)
		return -EINVAL;
	msg->kind = m->is_datagram ? CMMSG_SIDR_REQ : CMMSG_REQ;
	if (m->private_bytes > cmmsg_private_bytes(msg->kind) - head)
		return -EINVAL;
	cm_fields_fill(msg, m);
	memcpy(start.local, m->at.local, 16);
	memcpy(start.peer, m->at.peer, 16);
	memcpy(ip.src, m->at.local, 16);
	memcpy(ip.dst, m->at.peer, 16);
	msg->service_id = cmmsg_service_id(m->is_ib && m->at.space ? m->at.space
								   : o->space,
					   m->at.peer_port);
	msg->local_timeout = msg->remote_timeout = m->timeout;
	msg->max_cm_retries = m->max_retries & 15;
	if (head)
		cmmsg_ip_write(msg->private_data, &ip);
	memcpy(msg->private_data + head, m->private_data, m->private_bytes);
	return cm_connect(s->cm, &start, now_ns, &o->conv);
}

static int do_accept(struct cmserver *s, struct object *o,
		     const struct cmproto *m, uint64_t now_ns)
{
	struct cmmsg msg = {.kind = o->is_datagram ? CMMSG_SIDR_REP
						   : CMMSG_REP};

	if (m->private_bytes > cmmsg_private_bytes(msg.kind))
		return -EINVAL;
	cm_fields_fill(&msg, m);
	memcpy(msg.private_data, m->private_data, m->private_bytes);
	return cm_accept(s->cm, o->conv, &msg, now_ns);
}

static int do_reject(struct cmserver *s, struct object *o,
		     const struct cmproto *m, uint64_t now_ns)
{
	struct cmmsg msg = {.kind = o->is_datagram ? CMMSG_SIDR_REP : CMMSG_REJ,
			    .reason = (uint16_t)m->status,
			    .status = CMMSG_SIDR_REJECTED};

	if (m->private_bytes > cmmsg_private_bytes(msg.kind))
		return -EINVAL;
	memcpy(msg.private_data, m->private_data, m->private_bytes);
	return cm_reject(s->cm, o->conv, &msg, now_ns);
}

/* Binds the port of a resumed conversation.  If another object has bound the
 * port by now, the conversation continues without a port. */
static void keep_port(struct cmserver *s, struct object *o, bool may_share)
{
	const struct ports_want want = {.space = o->space,
					.port = o->port,
					.where = o->where,
					.may_share = may_share};

	if (ports_bind(s->ports, &want, 0, &o->binding, &o->port))
		o->binding = NONE;
}

/* Reads the note of a message.  False: this client has no right to the note.
 * Clients of the broker's own user can read the key of the seals, so their
 * notes need no seal. */
static bool read_note(const struct cmserver *s, const struct cmserver_client *c,
		      const struct cmproto *m, uint64_t now_ns,
		      struct cm_note *note)
{
	bool is_known = cm_seal_read(&s->seal, m->note, now_ns, note);

	if (c->share->cm.is_exempt)
		note->is_unproven = false;
	return (is_known || c->share->cm.is_exempt) &&
	       !cm_journal_is_others(&s->cm_journal, note->local_id,
				     &c->process);
}

/* Continues a conversation that an earlier broker served, for the process that
 * had the conversation there. */
static int do_resume(struct cmserver *s, struct cmserver_client *c,
		     const struct cmproto *m, uint64_t now_ns,
		     struct cmproto *reply)
{
	struct cm_note note;
	struct object *o;
	int err;

	if (!read_note(s, c, m, now_ns, &note))
		return -EPERM;
	err = object_new(s, c, &o);
	if (err)
		return err;
	o->space = m->at.space;
	o->is_datagram = m->is_datagram;
	memcpy(o->where.ip, m->at.local, 16);
	o->port = m->at.local_port;
	err = cm_note_resume(s->cm, &c->share->cm, id_of(s, o), &note, now_ns,
			     &o->conv);
	if (err) {
		o->conv = 0;
		object_free(s, o, now_ns);
		return err;
	}
	/* before put_note, which may write a new record to the slot of the old
	 * one */
	cm_journal_take(&s->cm_journal, note.local_id);
	if (m->at.local_port && may_bind(c, m->at.local_port))
		keep_port(s, o, m->may_share);
	reply->new_id = id_of(s, o);
	put_note(s, o, reply);
	return 0;
}

static void release_noted(struct cmserver *s, const struct cmserver_client *c,
			  const struct cmproto *m, uint64_t now_ns)
{
	struct cm_note note;

	if (!read_note(s, c, m, now_ns, &note))
		return;
	cm_journal_take(&s->cm_journal, note.local_id);
	cm_note_release(s->cm, &c->share->cm, &note, now_ns);
}

static int perform_call(struct cmserver *s, struct object *o,
			const struct cmproto *m, uint64_t now_ns)
{
	switch ((enum cmproto_kind)m->kind) {
	case CMPROTO_LISTEN:
		return do_listen(s, o, m);
	case CMPROTO_CONNECT:
		return do_connect(s, o, m, now_ns);
	case CMPROTO_ACCEPT:
		return do_accept(s, o, m, now_ns);
	case CMPROTO_REJECT:
		return do_reject(s, o, m, now_ns);
	case CMPROTO_ESTABLISH:
		return cm_establish(s->cm, o->conv, now_ns);
	case CMPROTO_DISCONNECT:
		/* not -ENOENT, which to librdmacm means that the conversation
		 * was lost with its broker */
		return !o->conv ? -EINVAL
				: cm_disconnect(s->cm, o->conv, now_ns);
	case CMPROTO_TAKEN:
		cm_taken(s->cm, o->conv);
		return 0;
	case CMPROTO_RELEASE:
		object_free(s, o, now_ns);
		return 0;
	case CMPROTO_BIND:
	case CMPROTO_RESUME:
	case CMPROTO_ROUTE:
	case CMPROTO_DONE:
	case CMPROTO_EVENT:
		break;
	}
	return -EOPNOTSUPP;
}

/* BIND, CONNECT and RESUME say of which kind their addresses are. */
static bool is_misplaced(const struct cmserver *s, const struct cmproto *m)
{
	return (m->kind == CMPROTO_BIND || m->kind == CMPROTO_CONNECT ||
		m->kind == CMPROTO_RESUME) &&
	       (m->is_ib != 0) != s->wire.is_ib;
}

/* Is m about a conversation of an earlier server, although s is of a fabric's
 * process, which had none?  The note would be invented. */
static bool has_no_past(const struct cmserver *s, const struct cmproto *m)
{
	return s->wire.is_ib && (m->kind == CMPROTO_RESUME ||
				 (m->kind == CMPROTO_RELEASE && !m->id));
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
	struct object *o;

	if (c->output.is_lost)
		return c->output.waiting > 0;
	if (length != sizeof(*m) || m->version != CMPROTO_VERSION ||
	    m->private_bytes > CMPROTO_PRIVATE)
		return false;
	cm_seed(s->cm, entropy());
	reply.serial = m->serial;
	o = object_find(s, m->id);
	if (is_misplaced(s, m))
		reply.err = -EINVAL;
	else if (m->kind == CMPROTO_ROUTE || has_no_past(s, m))
		reply.err = -EOPNOTSUPP;
	else if (m->kind == CMPROTO_BIND)
		reply.err = do_bind(s, c, m, &reply);
	else if (m->kind == CMPROTO_RELEASE && !m->id)
		release_noted(s, c, m, now_ns);
	else if (m->kind == CMPROTO_RESUME)
		reply.err = do_resume(s, c, m, now_ns, &reply);
	else if (!o || o->client != c)
		reply.err = -ENOENT;
	else
		reply.err = perform_call(s, o, m, now_ns);
	if (o && o->client == c && m->kind != CMPROTO_RELEASE)
		put_note(s, o, &reply);
	if (has_answer(m))
		tell_client(s, c, &reply);
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
		object_free(s, (struct object *)(void *)c->own.next, now_ns);
		/* each object may send messages, and the rings are short */
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
					 .conversations = OBJECTS,
					 .half_open = HALF_OPEN};
	struct cmserver *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->wire = *wire;
	share_table_init(&s->shares, geteuid());
	list_init(&s->clients);
	cm_journal_init(&s->cm_journal, fd_store);
	s->cm = cm_new(&config, now_ns);
	s->ports = ports_new(OBJECTS);
	if (!s->cm || !s->ports || !cm_seal_init(&s->seal, fd_store, now_ns)) {
		cmserver_free(s);
		return NULL;
	}
	return s;
}

/* Releases the inherited conversations of the process pid, which has ended; pid
 * 0: those of all processes that have ended.  If there is no memory, their
 * peers are not told. */
static void execute_notes(struct cmserver *s, pid_t pid, uint64_t now_ns)
{
	struct fd_store_record left;

	while (cm_journal_next(&s->cm_journal, pid, &left)) {
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
		struct object *o = &s->object[i];

		if (!o->client || !o->conv)
			continue;
		cm_journal_take(&s->cm_journal, o->conv);
		cm_note_make(s->cm, o->conv, &note);
		cm_journal_write(&s->cm_journal, i, &o->client->process, &note);
	}
	execute_notes(s, 0, now_ns);
}

bool cmserver_awaits(const struct cmserver *s, pid_t pid)
{
	return cm_journal_has(&s->cm_journal, pid);
}

void cmserver_process_ended(struct cmserver *s, pid_t pid, uint64_t now_ns)
{
	if (pid > 0)
		execute_notes(s, pid, now_ns);
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
