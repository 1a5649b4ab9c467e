/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that begin a conversation, REQ and SIDR_REQ: finds the listener that
 * answers a request, and holds requests that wait for a listener.
 *
 * Some programs tell their peer that they listen, and begin to listen shortly
 * afterwards.  So a request that finds no listener is held for CM_HOLD_NS
 * before it is refused.
 * A request is also held if the listener's backlog is full, or if its sender
 * has too many unanswered requests.  It is then held until there is room, but
 * for at most FULL_NS after its last repetition.  The repetitions of a held
 * request are counted as duplicates.
 *
 * A held request is a conversation in HELD, which counts for no owner.
 * HELD_MAX and HELD_SHARE limit the held requests, so that a flood of requests
 * leaves free conversations for the requests that listeners can take.
 */
#include <string.h>

#include "cm/conv.h"

/* How long a request waits for room: longer than the 4.3 s between two tries of
 * rdma_cm, so that a sender that still waits renews the hold by its next try.
 */
#define FULL_NS	   8600000000u
#define DOUBT_NS   1000000000u /* between CM_STALE events of a connection */
#define HELD_MAX   1024	       /* the most held requests of all senders */
#define HELD_SHARE 256 /* the most held of one sender, see conv_sender */

/* Returns the conversation of this manager that sent the request; NULL: another
 * manager sent it. */
static const struct conv *own_sender(struct cm *cm, const uint8_t from[16],
				     const uint8_t to[16],
				     const struct cmmsg *m)
{
	const struct conv *c = conv_find(cm, m->local_id);

	return c && !c->is_passive && !memcmp(c->local, from, 16) &&
			       !memcmp(c->peer, to, 16) &&
			       c->transaction_id == m->transaction_id
		       ? c
		       : NULL;
}

static struct conv_listener *listener_of(struct cm *cm, const uint8_t from[16],
					 const uint8_t to[16],
					 const struct cmmsg *m)
{
	return listener_at(cm, m, to, own_sender(cm, from, to, m) != NULL);
}

/* Sends a refusal that belongs to no conversation. */
static void refuse_request(struct cm *cm, const uint8_t from[16],
			   const uint8_t to[16], const struct cmmsg *req,
			   uint16_t reason)
{
	struct cmmsg m;

	cmmsg_refuse(req, reason, &m);
	cm->counters.refused++;
	step_send_bare(cm, to, from, &m);
}

static void refuse_unserved(struct cm *cm, const uint8_t from[16],
			    const uint8_t to[16], const struct cmmsg *m)
{
	cm->counters.no_listener++;
	refuse_request(cm, from, to, m, CMMSG_REJ_BAD_SERVICE_ID);
}

/* Returns the REJ reason if no listener could serve the request; 0: a listener
 * may serve it. */
static uint16_t judge_request(const struct cmmsg *m, const uint8_t from[16],
			      const uint8_t to[16])
{
	if (m->kind == CMMSG_SIDR_REQ)
		return 0;
	if (m->qp.transport > CMMSG_TRANSPORT_UC || m->qp.rdc_exists)
		return CMMSG_REJ_BAD_SERVICE_TYPE;
	/* the connection's addresses must be those of the conversation, so that
	 * a peer cannot make us connect to a third host */
	if (memcmp(m->primary.local_gid, from, 16) != 0 ||
	    memcmp(m->primary.remote_gid, to, 16) != 0)
		return CMMSG_REJ_BAD_GID;
	return 0;
}

static struct conv *passive_new(struct cm *cm, const uint8_t from[16],
				const uint8_t to[16], const struct cmmsg *m)
{
	struct conv *c;

	if (conv_new(cm, NULL, 0, &c))
		return NULL;
	memcpy(c->local, to, 16);
	memcpy(c->peer, from, 16);
	c->is_passive = true;
	c->way = cm->rx_way;
	c->transaction_id = m->transaction_id;
	c->retry.timeout_exponent = m->local_timeout;
	c->retry.given = m->max_cm_retries;
	c->sender = conv_sender(cm, own_sender(cm, from, to, m), from);
	conv_set_remote(cm, c, m->local_id);
	return c;
}

/*
 * Does the request name a queue pair that has a connection with us (IBTA
 * 12.9.8.3.1)?  Then the peer has lost that connection, or somebody has forged
 * the request to end the connection.  The request is refused.  If a
 * conversation of this manager has sent the request, the connection ends; for
 * such a request conv_find_qpn finds only a connection whose other end has the
 * same owner as the sender.  Otherwise the connection's consumer gets a
 * CM_STALE event, at most one in DOUBT_NS, and asks the peer's host.
 */
static bool is_stale(struct cm *cm, const uint8_t from[16],
		     const uint8_t to[16], const struct cmmsg *m,
		     uint64_t now_ns)
{
	const struct conv *sender = own_sender(cm, from, to, m);
	struct conv *old = m->kind == CMMSG_REQ
				   ? conv_find_qpn(cm, from, m->qp.qpn, sender)
				   : NULL;

	if (!old)
		return false;
	cm->counters.stale++;
	refuse_request(cm, from, to, m, CMMSG_REJ_STALE);
	if (sender) {
		step_run(cm, old, IN_STALE, NULL, now_ns);
	} else if (!old->doubted_ns || now_ns - old->doubted_ns >= DOUBT_NS) {
		old->doubted_ns = now_ns;
		step_emit(cm, old, CM_STALE, m);
	}
	return true;
}

/* Gives the request to the listener, which has room for it.  A request that
 * shows an older connection to be stale is refused instead. */
static void admit_request(struct cm *cm, struct conv_listener *l,
			  struct conv *c, const struct cmmsg *m,
			  uint64_t now_ns)
{
	if (is_stale(cm, c->peer, c->local, m, now_ns)) {
		conv_free(cm, c);
		return;
	}
	conv_open_half(cm, c);
	conv_set_owner(c, l->owner);
	c->user = l->user;
	c->listener = (uint32_t)(l - cm->listener);
	c->is_released = false;
	c->is_waiting = true;
	l->waiting++;
	conv_enter(cm, c,
		   m->kind == CMMSG_REQ ? CONV_REQ_RCVD : CONV_SIDR_RCVD);
	cmmsg_write(c->retry.last, m); /* for the REP, see step.c */
	if (m->kind == CMMSG_REQ)
		conv_set_qpn(cm, c, m->qp.qpn);
	step_emit(cm, c, CM_REQUEST, m);
}

/*
 * Refuses a request if the listener's owner has its share of conversations,
 * since the request could not count for that owner.  True: the request is
 * refused, and c is freed.
 */
static bool refuse_beyond_share(struct cm *cm, const struct conv_listener *l,
				struct conv *c, const struct cmmsg *m)
{
	if (conv_may_own(cm, l->owner) != -EDQUOT)
		return false;
	refuse_request(cm, c->peer, c->local, m, CMMSG_REJ_NO_RESOURCES);
	conv_free(cm, c);
	return true;
}

static bool has_room(const struct cm *cm, const struct conv_listener *l,
		     const struct conv *c)
{
	return l->waiting < l->backlog && conv_may_open_half(cm, c);
}

/* Sets the listener for which the request waits, and the time until which the
 * request is held.  The request then counts as not woken. */
static void hold_until(struct cm *cm, struct conv *c, uint32_t listener,
		       uint64_t until_ns)
{
	c->listener = listener;
	c->retry.held_until_ns = until_ns;
	c->retry.left = 0; /* see request_due */
	wheel_set(&cm->wheel, &c->timer, until_ns);
}

/* Holds the request, which waits for this listener or for any
 * (CONV_NO_LISTENER), until until_ns.  False: HELD_MAX requests are held
 * already, or HELD_SHARE requests of this sender. */
static bool hold_request(struct cm *cm, struct conv *c, const uint8_t *mad,
			 uint32_t listener, uint64_t until_ns)
{
	uint16_t *share = &cm->waiting.held_of[c->sender];

	if (cm->waiting.held_count == HELD_MAX || *share == HELD_SHARE)
		return false;
	++*share;
	cm->waiting.held_count++;
	cm->counters.held++;
	memcpy(c->retry.last, mad, MAD_BYTES);
	c->is_released = true;
	conv_enter(cm, c, CONV_HELD);
	list_push_tail(&cm->waiting.held, &c->queue);
	hold_until(cm, c, listener, until_ns);
	return true;
}

/* Makes the next cm_tick call request_due.  This function does not call
 * request_due itself, since many requests may be woken at once, each may send a
 * message, and the rings are short. */
static void wake_held(struct cm *cm, struct conv *c)
{
	c->retry.left = 1;
	wheel_set(&cm->wheel, &c->timer, 0);
}

/* Can the held request be served now, and was it not woken yet? */
static bool may_wake(const struct cm *cm, const struct conv *c)
{
	return c->listener != CONV_NO_LISTENER && !c->retry.left &&
	       has_room(cm, &cm->listener[c->listener], c);
}

void request_wake_one(struct cm *cm, uint32_t listener)
{
	list_for_each (n, &cm->waiting.held) {
		struct conv *c = CONV_QUEUED(n);

		if (c->listener == listener && may_wake(cm, c)) {
			wake_held(cm, c);
			return;
		}
	}
}

void request_wake_sender(struct cm *cm, uint16_t sender)
{
	list_for_each (n, &cm->waiting.held) {
		struct conv *c = CONV_QUEUED(n);

		if (c->sender == sender && may_wake(cm, c)) {
			wake_held(cm, c);
			return;
		}
	}
}

/* Called when a woken request was served, was given up, or got no place after
 * all.  Wakes the next requests that can have the places for which that request
 * was woken. */
static void pass_on(struct cm *cm, uint32_t listener, uint16_t sender)
{
	request_wake_one(cm, listener);
	request_wake_sender(cm, sender);
}

void request_unhold(struct cm *cm, struct conv *c)
{
	cm->waiting.held_of[c->sender]--;
	cm->waiting.held_count--;
	if (c->retry.left)
		pass_on(cm, c->listener, c->sender);
}

void request_wake_served(struct cm *cm)
{
	struct cmmsg m;

	list_for_each (n, &cm->waiting.held) {
		struct conv *c = CONV_QUEUED(n);

		if (c->listener == CONV_NO_LISTENER &&
		    cmmsg_parse(c->retry.last, MAD_BYTES, &m) &&
		    listener_of(cm, c->peer, c->local, &m))
			wake_held(cm, c);
	}
}

void request_wake_left(struct cm *cm, uint32_t listener)
{
	list_for_each (n, &cm->waiting.held)
		if (CONV_QUEUED(n)->listener == listener)
			wake_held(cm, CONV_QUEUED(n));
}

/* Keeps a request in the list `held` until until_ns.  The request waits for
 * this listener from now on.  If the request was woken, wakes the next ones in
 * its place. */
static void keep_held(struct cm *cm, struct conv *c, uint32_t listener,
		      uint64_t until_ns)
{
	bool was_woken = c->retry.left != 0;
	uint32_t left = c->listener;

	hold_until(cm, c, listener, until_ns);
	if (was_woken)
		pass_on(cm, left, c->sender);
}

void request_due(struct cm *cm, struct conv *c, uint64_t now_ns)
{
	bool is_woken = c->retry.left != 0;
	struct conv_listener *l;
	struct cmmsg m;

	/* cmmsg_parse succeeds: the request was parsed when it came */
	cmmsg_parse(c->retry.last, MAD_BYTES, &m);
	l = listener_of(cm, c->peer, c->local, &m);
	cm->rx_way = c->way;
	if (l && refuse_beyond_share(cm, l, c, &m))
		return;
	if (l && has_room(cm, l, c)) {
		admit_request(cm, l, c, &m, now_ns);
	} else if (l && (is_woken || c->listener == CONV_NO_LISTENER)) {
		keep_held(cm, c, (uint32_t)(l - cm->listener),
			  c->listener == CONV_NO_LISTENER
				  ? now_ns + FULL_NS
				  : c->retry.held_until_ns);
	} else if (!l && listener_expected_until(cm, &m, c->local) > now_ns) {
		keep_held(cm, c, CONV_NO_LISTENER,
			  listener_expected_until(cm, &m, c->local));
	} else {
		/* a request that got no room in time is dropped without a REJ,
		 * so that its sender may repeat it */
		if (!l)
			refuse_unserved(cm, c->peer, c->local, &m);
		conv_free(cm, c);
	}
}

/* Returns the time until which the request may wait for a listener; 0: it is
 * refused at once. */
static uint64_t may_wait_until(struct cm *cm, const uint8_t from[16],
			       const uint8_t to[16], const struct cmmsg *m,
			       uint64_t now_ns)
{
	uint64_t expected = listener_expected_until(cm, m, to);
	const struct conv *sender = own_sender(cm, from, to, m);
	uint64_t until_ns =
		sender && sender->is_strict ? 0 : now_ns + CM_HOLD_NS;

	if (expected <= now_ns)
		return until_ns;
	return expected > until_ns ? expected : until_ns;
}

/* Holds a request that no listener can take now.  If the request may not be
 * held, frees c, and refuses the request if there is no listener (l NULL). */
static void keep_waiting(struct cm *cm, struct conv_listener *l, struct conv *c,
			 const struct cmmsg *m, const uint8_t *mad,
			 uint64_t now_ns)
{
	uint32_t listener = l ? (uint32_t)(l - cm->listener) : CONV_NO_LISTENER;
	uint64_t until_ns =
		l ? now_ns + FULL_NS
		  : may_wait_until(cm, c->peer, c->local, m, now_ns);

	if (l)
		cm->counters.backlog_full++;
	if (until_ns && hold_request(cm, c, mad, listener, until_ns))
		return;
	if (!l)
		refuse_unserved(cm, c->peer, c->local, m);
	conv_free(cm, c);
}

/* Handles a repetition of a request that has a conversation, in any state. */
static void repeat_answer(struct cm *cm, struct conv *c, struct cmmsg *m,
			  uint64_t now_ns)
{
	cm->counters.duplicates++;
	/* the sender still waits, so the request may wait for room for another
	 * FULL_NS */
	if (c->state == CONV_HELD && c->listener != CONV_NO_LISTENER &&
	    !c->retry.left)
		hold_until(cm, c, c->listener, now_ns + FULL_NS);
	if (!step_run(cm, c, m->kind == CMMSG_REQ ? IN_REQ : IN_SIDR_REQ, m,
		      now_ns))
		cm->counters.unexpected++;
}

void request_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		struct cmmsg *m, const uint8_t *mad, uint64_t now_ns)
{
	struct conv *c = conv_find_remote(cm, from, m->local_id);
	uint16_t reason = judge_request(m, from, to);
	struct conv_listener *l;

	if (c) {
		repeat_answer(cm, c, m, now_ns);
		return;
	}
	if (reason) {
		refuse_request(cm, from, to, m, reason);
		return;
	}
	c = passive_new(cm, from, to, m);
	if (!c) {
		cm->counters.backlog_full++;
		return;
	}
	l = listener_of(cm, from, to, m);
	if (l && refuse_beyond_share(cm, l, c, m))
		return;
	if (l && has_room(cm, l, c))
		admit_request(cm, l, c, m, now_ns);
	else
		keep_waiting(cm, l, c, m, mad, now_ns);
}
