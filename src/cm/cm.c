/* SPDX-License-Identifier: BSD-2-Clause */
/* The manager: finds the conversation of a message or a command; see cm.h. */
#include "cm/cm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/conv.h"

#define ROOM	   4  /* entries that one input may put into a ring */
#define TICK_BATCH 16 /* the most timers that one cm_tick expires */

struct cm *cm_new(const struct cm_config *config, uint64_t now_ns)
{
	struct cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return NULL;
	cm->conv = calloc(config->conversations, sizeof(*cm->conv));
	cm->free_list = calloc(config->conversations, sizeof(*cm->free_list));
	cm->listener = calloc(CONV_LISTENERS, sizeof(*cm->listener));
	if (!cm->conv || !cm->free_list || !cm->listener) {
		cm_free(cm);
		return NULL;
	}
	rng_init(&cm->rng, config->seed);
	cm->hash_key = rng_u64(&cm->rng);
	cm->limit = config->conversations;
	cm->half_open_limit = config->half_open;
	for (int i = 0; i < CONV_BUCKETS; i++) {
		list_init(&cm->local[i]);
		list_init(&cm->remote[i]);
		list_init(&cm->qpn[i]);
		list_init(&cm->service[i]);
	}
	list_init(&cm->waiting.held);
	list_init(&cm->waiting.answered);
	wheel_init(&cm->wheel, now_ns);
	return cm;
}

void cm_free(struct cm *cm)
{
	free(cm->conv);
	free(cm->free_list);
	free(cm->listener);
	free(cm);
}

void cm_seed(struct cm *cm, uint64_t entropy)
{
	rng_init(&cm->rng, rng_u64(&cm->rng) ^ entropy);
}

const struct cm_counters *cm_counters(const struct cm *cm)
{
	return &cm->counters;
}

uint32_t cm_count(const struct cm *cm)
{
	return cm->used;
}

int cm_listen(struct cm *cm, struct cm_owner *owner, uint64_t user,
	      uint64_t service_id, const struct cm_where *where,
	      uint32_t backlog, uint32_t *listener)
{
	int err = cm_owner_may_add(owner, owner ? owner->listeners : 0,
				   CONV_LISTENERS - cm->listeners);
	struct conv_listener *l = cm->listener;
	uint32_t i = 0;

	if (err)
		return err;
	while (l[i].is_used)
		i++;
	l += i;
	cm->listeners++;
	if (owner)
		owner->listeners++;
	*l = (struct conv_listener){.is_used = true,
				    .owner = owner,
				    .service_id = service_id,
				    .user = user,
				    .where = *where,
				    .backlog = backlog};
	listener_enter(cm, l);
	request_wake_served(cm);
	*listener = i;
	return 0;
}

bool cm_is_served(const struct cm *cm, uint64_t service_id,
		  const struct cm_where *where)
{
	return listener_serves(cm, service_id, where);
}

void cm_unlisten(struct cm *cm, uint32_t listener, uint64_t until_ns)
{
	struct conv_listener *l = &cm->listener[listener];

	if (until_ns)
		listener_remember(cm, l, until_ns);
	list_remove(&l->link);
	/* requests that wait for l must not count for the next listener at this
	 * index */
	for (uint32_t i = 0; l->waiting && i < cm->fresh; i++)
		if (cm->conv[i].is_waiting &&
		    cm->conv[i].listener == listener) {
			cm->conv[i].is_waiting = false;
			l->waiting--;
		}
	l->is_used = false;
	cm->listeners--;
	if (l->owner)
		l->owner->listeners--;
	request_wake_left(cm, listener);
}

void cm_expect_listeners(struct cm *cm, uint64_t until_ns)
{
	cm->expecting_until_ns = until_ns;
}

/* Do the source address and the id of the message's sender fit the peer of the
 * conversation? */
static bool belongs_to(const struct conv *c, const struct cmmsg *m,
		       const uint8_t from[16])
{
	if (memcmp(c->peer, from, 16) != 0)
		return false;
	/* before the REP the peer's id is not known, and a SIDR_REP does not
	 * have it */
	return !c->remote_id || c->remote_id == m->local_id ||
	       m->kind == CMMSG_SIDR_REP;
}

static struct conv *find_recipient(struct cm *cm, const struct cmmsg *m,
				   const uint8_t from[16])
{
	uint32_t ours = m->kind == CMMSG_SIDR_REP ? m->local_id : m->remote_id;
	struct conv *c = NULL;

	if (ours)
		c = conv_find(cm, ours);
	/* A peer that gives up before it has heard from us knows no id of ours
	 * (IBTA 12.6.7.2, reason 4).  Any other message has our id. */
	else if (m->kind == CMMSG_REJ && m->reason == CMMSG_REJ_TIMEOUT)
		c = conv_find_remote(cm, from, m->local_id);
	return c && belongs_to(c, m, from) ? c : NULL;
}

/* Answers a message of an unknown conversation. */
static void answer_stray(struct cm *cm, const uint8_t from[16],
			 const uint8_t to[16], const struct cmmsg *m)
{
	struct cmmsg answer;

	cm->counters.unexpected++;
	if (cmmsg_answer_stray(m, &answer))
		step_send_bare(cm, to, from, &answer);
}

/* Refuses a LAP, since this manager loads no alternate path into a connection
 * that exists (IBTA 12.8). */
static void refuse_path(struct cm *cm, const struct conv *c,
			const uint8_t from[16], const uint8_t to[16],
			const struct cmmsg *m)
{
	const struct cmmsg apr = {.kind = CMMSG_APR,
				  .transaction_id = m->transaction_id,
				  .local_id = m->remote_id,
				  .remote_id = m->local_id,
				  .status = c && c->state == CONV_ESTABLISHED
						    ? CMMSG_APR_UNSUPPORTED
						    : CMMSG_APR_BAD_COMM_ID};

	if (!c)
		cm->counters.unexpected++;
	step_send_bare(cm, to, from, &apr);
}

void cm_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
	   const struct cm_way *by, const uint8_t *mad, size_t len,
	   uint64_t now_ns)
{
	struct cmmsg m;
	struct conv *c;

	cm->rx_way = *by;
	cm->counters.rx++;
	if (!cmmsg_parse(mad, len, &m) || (!m.local_id && !m.remote_id)) {
		cm->counters.malformed++;
		return;
	}
	if (m.kind == CMMSG_REQ || m.kind == CMMSG_SIDR_REQ) {
		request_rx(cm, from, to, &m, mad, now_ns);
		return;
	}
	if (m.kind == CMMSG_APR) {
		cm->counters.unexpected++; /* no LAP was sent */
		return;
	}
	c = find_recipient(cm, &m, from);
	if (m.kind == CMMSG_LAP) {
		refuse_path(cm, c, from, to, &m);
		return;
	}
	if (!c && cm->expecting_until_ns > now_ns)
		cm->counters.unexpected++; /* the peer repeats the message */
	else if (!c)
		answer_stray(cm, from, to, &m);
	else if (!step_run(cm, c,
			   (enum conv_input)(m.kind - CMMSG_REQ + IN_REQ), &m,
			   now_ns))
		cm->counters.unexpected++;
}

int cm_connect(struct cm *cm, const struct cm_start *start, uint64_t now_ns,
	       uint32_t *id)
{
	struct cmmsg m = start->msg;
	struct conv *c;
	int err = conv_new(cm, start->owner, start->id, &c);

	if (err)
		return err;
	memcpy(c->local, start->local, 16);
	memcpy(c->peer, start->peer, 16);
	c->user = start->user;
	c->is_strict = start->strict;
	c->way = (struct cm_way){
		.scope = start->scope, .pkey = m.qp.pkey, .sl = m.primary.sl};
	if (start->transaction_id)
		c->transaction_id = start->transaction_id;
	c->retry.given = m.max_cm_retries;
	conv_enter(cm, c, m.kind == CMMSG_REQ ? CONV_REQ_SENT : CONV_SIDR_SENT);
	memcpy(m.primary.local_gid, start->local, 16);
	memcpy(m.primary.remote_gid, start->peer, 16);
	/* a RoCE port has no LID: the fields are 0xffff (IBTA A16.4) */
	if (!m.primary.local_lid && !m.primary.remote_lid)
		m.primary.local_lid = m.primary.remote_lid = 0xffff;
	step_send(cm, c, &m);
	step_arm(cm, c, m.remote_timeout, m.max_cm_retries, now_ns);
	*id = c->local_id;
	return 0;
}

bool cm_has_ended(struct cm *cm, const struct cm_owner *owner,
		  const uint8_t peer[16], uint32_t qpn)
{
	return conv_has_ended(cm, owner, peer, qpn);
}

bool cm_has_peer(struct cm *cm, struct cm *peers, const uint8_t peer[16],
		 uint32_t qpn)
{
	return conv_has_peer(cm, peers, peer, qpn);
}

void cm_stale(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
	      uint64_t now_ns)
{
	struct conv *c = conv_find_qpn(cm, peer, qpn, NULL);

	if (c)
		step_run(cm, c, IN_STALE, NULL, now_ns);
}

void cm_taken(struct cm *cm, uint32_t id)
{
	struct conv *c = conv_find(cm, id);

	if (c && c->state == CONV_CLOSED)
		conv_settle(cm, c); /* the request was withdrawn */
	else if (c)
		conv_stop_waiting(cm, c);
}

void cm_set_user(struct cm *cm, uint32_t id, uint64_t user)
{
	struct conv *c = conv_find(cm, id);

	if (c)
		c->user = user;
}

static int command_conv(struct cm *cm, uint32_t id, enum conv_input input,
			const struct cmmsg *reply, uint64_t now_ns)
{
	struct conv *c = conv_find(cm, id);
	struct cmmsg m = {.kind = CMMSG_REJ};

	if (!c || c->is_released)
		return -ENOENT;
	if (reply)
		m = *reply;
	return step_run(cm, c, input, &m, now_ns) ? 0 : -EINVAL;
}

int cm_accept(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns)
{
	return command_conv(cm, id, IN_ACCEPT, reply, now_ns);
}

int cm_reject(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns)
{
	return command_conv(cm, id, IN_REJECT, reply, now_ns);
}

/* On the passive side the event CM_ESTABLISHED carries the message `none`.  Its
 * kind 0 tells the consumer that no RTU has come. */
int cm_establish(struct cm *cm, uint32_t id, uint64_t now_ns)
{
	const struct cmmsg none = {0};

	return command_conv(cm, id, IN_ESTABLISH, &none, now_ns);
}

int cm_disconnect(struct cm *cm, uint32_t id, uint64_t now_ns)
{
	return command_conv(cm, id, IN_DISCONNECT, NULL, now_ns);
}

void cm_release(struct cm *cm, uint32_t id, uint64_t now_ns)
{
	command_conv(cm, id, IN_RELEASE, NULL, now_ns);
}

static bool has_room(const struct cm *cm)
{
	return cm->out.tx_count + ROOM <= CONV_RING &&
	       cm->out.event_count + ROOM <= CONV_RING;
}

void cm_tick(struct cm *cm, uint64_t now_ns)
{
	for (int i = 0; i < TICK_BATCH && has_room(cm); i++) {
		struct wheel_timer *t = wheel_expire(&cm->wheel, now_ns);
		struct conv *c;

		if (!t)
			return;
		c = (struct conv *)(void *)((char *)t -
					    offsetof(struct conv, timer));
		if (c->state == CONV_HELD)
			request_due(cm, c, now_ns);
		else
			step_run(cm, c, c->retry.left ? IN_RETRY : IN_EXHAUSTED,
				 NULL, now_ns);
	}
}

bool cm_tx(struct cm *cm, struct cm_frame *frame)
{
	if (!cm->out.tx_count)
		return false;
	*frame = cm->out.tx[cm->out.tx_head];
	cm->out.tx_head = (cm->out.tx_head + 1) % CONV_RING;
	cm->out.tx_count--;
	return true;
}

bool cm_event(struct cm *cm, struct cm_event *event)
{
	if (!cm->out.event_count)
		return false;
	*event = cm->out.event[cm->out.event_head];
	cm->out.event_head = (cm->out.event_head + 1) % CONV_RING;
	cm->out.event_count--;
	return true;
}

uint64_t cm_deadline(const struct cm *cm)
{
	return wheel_deadline(&cm->wheel);
}
