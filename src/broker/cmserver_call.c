/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cmserver_call.h"

#include <errno.h>
#include <string.h>

#include "broker/cm_fields.h"
#include "broker/cmserver_object.h"
#include "broker/entropy.h"
#include "broker/procfs.h"
#include "cm/cm.h"

#define BACKLOG_MAX 1024

/* May the client's process bind the port (0: any port)?  If the port needs a
 * right of the process: the process may have ended, and another process may
 * have its pid by now; their start times tell the two processes apart. */
static bool may_bind(const struct cmserver_client *c, uint16_t port)
{
	const struct fd_store_entry *e = &c->process;
	struct procfs_stat now;

	return !port || !procfs_is_low_port(port) ||
	       (procfs_may_bind(e->pid, (uid_t)e->user, port) &&
		(!e->pid ||
		 (procfs_look(e->pid, &now) && now.start == e->start)));
}

/* Makes an object that has the service ID of the message, which is not that of
 * a port.  So the object needs no port. */
static int bind_service(struct cmserver *s, struct cmserver_client *c,
			const struct cmproto *m, struct cmproto *reply)
{
	struct cmserver_object *o;
	int err = m->is_ip || cmmsg_is_port(m->at.service_id)
			  ? -EINVAL
			  : cmserver_object_new(s, c, &o);

	if (err)
		return err;
	o->service_id = m->at.service_id;
	o->where.any_v6 = m->any_v6;
	o->where.only_own = m->only_own;
	memcpy(o->where.ip, m->at.local, 16);
	o->is_datagram = m->is_datagram;
	reply->new_id = cmserver_object_id(s, o);
	return 0;
}

static int do_bind(struct cmserver *s, struct cmserver_client *c,
		   const struct cmproto *m, struct cmproto *reply)
{
	struct ports_want want = {.space = m->at.space,
				  .port = m->at.local_port,
				  .where.any_v4 = m->any_v4,
				  .where.any_v6 = m->any_v6,
				  .where.only_own = m->only_own,
				  .where.by_header = m->is_ib && m->is_ip,
				  .may_share = m->may_share};
	struct cmserver_object *o;
	int err;

	if (m->is_ib && m->at.service_id)
		return bind_service(s, c, m, reply);
	if (!may_bind(c, m->at.local_port))
		return -EACCES;
	err = cmserver_object_new(s, c, &o);
	if (err)
		return err;
	memcpy(want.where.ip, m->at.local, 16);
	err = ports_bind(s->ports, &want, (uint32_t)entropy(), &o->binding,
			 &o->port);
	if (err) {
		o->binding = CMSERVER_NONE;
		cmserver_object_free(s, o, 0);
		return err;
	}
	o->space = m->at.space;
	o->where = want.where;
	o->is_datagram = m->is_datagram;
	reply->new_id = cmserver_object_id(s, o);
	reply->at.local_port = o->port;
	return 0;
}

/* Reserves the object's addresses for its listener.  If the object has a
 * service ID and no port, reserves nothing and only looks for another listener:
 * the caller makes the object's listener at once by cm_listen.  Returns 0, or
 * -EADDRINUSE: another listener of the service has one of the addresses. */
static int claim_service(struct cmserver *s, const struct cmserver_object *o)
{
	if (o->binding != CMSERVER_NONE)
		return ports_listen(s->ports, o->binding);
	return cm_is_served(s->cm, o->service_id, &o->where) ? -EADDRINUSE : 0;
}

static uint64_t service_of(const struct cmserver_object *o)
{
	return o->service_id ? o->service_id
			     : cmmsg_service_id(o->space, o->port);
}

static int do_listen(struct cmserver *s, struct cmserver_object *o,
		     const struct cmproto *m)
{
	uint32_t backlog = m->backlog && m->backlog < BACKLOG_MAX ? m->backlog
								  : BACKLOG_MAX;
	int err;

	if (o->listener != CMSERVER_NONE || o->conv ||
	    (o->binding == CMSERVER_NONE && !o->service_id))
		return -EINVAL;
	err = claim_service(s, o);
	if (err)
		return err;
	err = cm_listen(s->cm, &o->client->share->cm, cmserver_object_id(s, o),
			service_of(o), &o->where, backlog, &o->listener);
	if (err && o->binding != CMSERVER_NONE)
		ports_unlisten(s->ports, o->binding);
	return err;
}

/* Returns the service ID of a request to connect. */
static uint64_t service_asked(const struct cmserver_object *o,
			      const struct cmproto *m)
{
	if (m->is_ib && m->at.service_id)
		return m->at.service_id;
	return cmmsg_service_id(m->is_ib && m->at.space ? m->at.space
							: o->space,
				m->at.peer_port);
}

static int do_connect(struct cmserver *s, struct cmserver_object *o,
		      const struct cmproto *m, uint64_t now_ns)
{
	struct cm_start start = {.owner = &o->client->share->cm,
				 .user = cmserver_object_id(s, o),
				 .id = m->call_id,
				 .transaction_id = m->call_transaction,
				 .strict = m->is_strict,
				 .scope = m->at.scope};
	struct cmmsg *msg = &start.msg;
	struct cmmsg_ip ip = {.src_port = o->port};
	size_t head = m->is_ib ? 0 : CMMSG_IP_BYTES;

	if (o->listener != CMSERVER_NONE || o->conv)
		return -EINVAL;
	msg->kind = m->is_datagram ? CMMSG_SIDR_REQ : CMMSG_REQ;
	if (m->private_bytes > cmmsg_private_bytes(msg->kind) - head)
		return -EINVAL;
	cm_fields_fill(msg, m);
	memcpy(start.local, m->at.local, 16);
	memcpy(start.peer, m->at.peer, 16);
	memcpy(ip.src, m->at.local, 16);
	memcpy(ip.dst, m->at.peer, 16);
	msg->service_id = service_asked(o, m);
	msg->local_timeout = msg->remote_timeout = m->timeout;
	msg->max_cm_retries = m->max_retries & 15;
	if (head)
		cmmsg_ip_write(msg->private_data, &ip);
	memcpy(msg->private_data + head, m->private_data, m->private_bytes);
	return cm_connect(s->cm, &start, now_ns, &o->conv);
}

static int do_accept(struct cmserver *s, struct cmserver_object *o,
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

static int do_reject(struct cmserver *s, struct cmserver_object *o,
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
static void keep_port(struct cmserver *s, struct cmserver_object *o,
		      bool may_share)
{
	const struct ports_want want = {.space = o->space,
					.port = o->port,
					.where = o->where,
					.may_share = may_share};

	if (ports_bind(s->ports, &want, 0, &o->binding, &o->port))
		o->binding = CMSERVER_NONE;
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
	struct cmserver_object *o;
	int err;

	if (!read_note(s, c, m, now_ns, &note))
		return -EPERM;
	err = cmserver_object_new(s, c, &o);
	if (err)
		return err;
	o->space = m->at.space;
	o->is_datagram = m->is_datagram;
	memcpy(o->where.ip, m->at.local, 16);
	o->port = m->at.local_port;
	err = cm_note_resume(s->cm, &c->share->cm, cmserver_object_id(s, o),
			     &note, now_ns, &o->conv);
	if (err) {
		o->conv = 0;
		cmserver_object_free(s, o, now_ns);
		return err;
	}
	/* before cmserver_object_note, which may write a new record to the slot
	 * of the old one */
	cm_journal_take(&s->cm_journal, note.local_id);
	if (m->at.local_port && may_bind(c, m->at.local_port))
		keep_port(s, o, m->may_share);
	reply->new_id = cmserver_object_id(s, o);
	cmserver_object_note(s, o, reply);
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

static int perform_call(struct cmserver *s, struct cmserver_object *o,
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
		cmserver_object_free(s, o, now_ns);
		return 0;
	case CMPROTO_BIND:
	case CMPROTO_RESUME:
	case CMPROTO_ROUTE:
	case CMPROTO_INTERFACE:
	case CMPROTO_INTERFACE_OF:
	case CMPROTO_JOIN:
	case CMPROTO_LEAVE:
	case CMPROTO_DONE:
	case CMPROTO_EVENT:
		break;
	}
	return -EOPNOTSUPP;
}

/* Is m for a fabric (is_ib) although s serves no fabric, or the reverse?  Only
 * BIND, CONNECT and RESUME have is_ib. */
static bool is_misplaced(const struct cmserver *s, const struct cmproto *m)
{
	return (m->kind == CMPROTO_BIND || m->kind == CMPROTO_CONNECT ||
		m->kind == CMPROTO_RESUME) &&
	       (m->is_ib != 0) != s->wire.is_ib;
}

/* Is m about a conversation of an earlier server, although s is of a fabric's
 * process?  That process continues no conversations of an earlier server, so
 * the note of such a message is forged. */
static bool has_no_past(const struct cmserver *s, const struct cmproto *m)
{
	return s->wire.is_ib && (m->kind == CMPROTO_RESUME ||
				 (m->kind == CMPROTO_RELEASE && !m->id));
}

/* Is the request one that only the process of a fabric handles? */
static bool is_of_subnet(const struct cmproto *m)
{
	return m->kind == CMPROTO_ROUTE || m->kind == CMPROTO_INTERFACE ||
	       m->kind == CMPROTO_INTERFACE_OF || m->kind == CMPROTO_JOIN ||
	       m->kind == CMPROTO_LEAVE;
}

/* Executes a request of the client.  o: the client's object that m->id names;
 * NULL: there is none. */
static int dispatch_call(struct cmserver *s, struct cmserver_client *c,
			 struct cmserver_object *o, const struct cmproto *m,
			 uint64_t now_ns, struct cmproto *reply)
{
	if (is_misplaced(s, m))
		return -EINVAL;
	if (is_of_subnet(m) || has_no_past(s, m))
		return -EOPNOTSUPP;
	if (m->kind == CMPROTO_BIND)
		return do_bind(s, c, m, reply);
	if (m->kind == CMPROTO_RELEASE && !m->id) {
		release_noted(s, c, m, now_ns);
		return 0;
	}
	if (m->kind == CMPROTO_RESUME)
		return do_resume(s, c, m, now_ns, reply);
	return o ? perform_call(s, o, m, now_ns) : -ENOENT;
}

int cmserver_call(struct cmserver *s, struct cmserver_client *c,
		  const struct cmproto *m, uint64_t now_ns,
		  struct cmproto *reply)
{
	struct cmserver_object *o = cmserver_object_find(s, m->id);
	int err;

	if (o && o->client != c)
		o = NULL; /* another client's */
	err = dispatch_call(s, c, o, m, now_ns, reply);
	if (o && m->kind != CMPROTO_RELEASE)
		cmserver_object_note(s, o, reply);
	return err;
}
