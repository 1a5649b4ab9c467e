/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool of conversations, the tables that find them, and their states. */
#include "cm/conv.h"

#include <string.h>

#include "util/check.h"

static struct list *local_bucket(struct cm *cm, uint32_t id)
{
	return &cm->local[bucket_of(cm, &id, sizeof(id), 1)];
}

static struct list *remote_bucket(struct cm *cm, const uint8_t peer[16],
				  uint32_t id)
{
	return &cm->remote[bucket_of(cm, peer, 16, id)];
}

static struct list *qpn_bucket(struct cm *cm, const uint8_t peer[16],
			       uint32_t qpn)
{
	return &cm->qpn[bucket_of(cm, peer, 16, qpn)];
}

/* tests/system/cm/talk.py allows 512 bytes for a conversation in TIMEWAIT. */
_Static_assert(sizeof(struct conv) <= 512, "a conversation grows");

#define CONV_OF(node, link)                                                    \
	((struct conv *)(void *)((char *)(node)-offsetof(struct conv, link)))

struct conv *conv_find(struct cm *cm, uint32_t local_id)
{
	list_for_each (n, local_bucket(cm, local_id)) {
		struct conv *c = CONV_OF(n, by_local);

		if (c->local_id == local_id)
			return c;
	}
	return NULL;
}

struct conv *conv_find_remote(struct cm *cm, const uint8_t peer[16],
			      uint32_t remote_id)
{
	list_for_each (n, remote_bucket(cm, peer, remote_id)) {
		struct conv *c = CONV_OF(n, by_remote);

		if (c->remote_id == remote_id && !memcmp(c->peer, peer, 16))
			return c;
	}
	return NULL;
}

static bool is_live(enum conv_state state)
{
	return state == CONV_REP_RCVD || state == CONV_REQ_RCVD ||
	       state == CONV_REP_SENT || state == CONV_REP_WAIT ||
	       state == CONV_ESTABLISHED;
}

/* The connection is about to end, or has just ended. */
static bool is_ending(enum conv_state state)
{
	return state == CONV_DREQ_SENT || state == CONV_DREQ_RCVD ||
	       state == CONV_TIMEWAIT;
}

/* Is `other` the other end of the connection c?  Before `other` knows the id of
 * its peer, only the addresses are compared. */
static bool is_other_end(const struct conv *c, const struct conv *other)
{
	return (!other->remote_id || other->remote_id == c->local_id) &&
	       !memcmp(other->local, c->peer, 16) &&
	       !memcmp(other->peer, c->local, 16);
}

/* Is the peer's end of c also a conversation of this manager, one that knows
 * its peer's id and has the same owner as `sender`?  False if that owner stands
 * for several users: the peer's end and `sender` may be of different users. */
static bool is_of_sender(struct cm *cm, const struct conv *c,
			 const struct conv *sender)
{
	const struct conv *other = conv_find(cm, c->remote_id);

	return other && other->remote_id && is_other_end(c, other) &&
	       other->owner == sender->owner &&
	       !(sender->owner && sender->owner->is_many);
}

struct conv *conv_find_qpn(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
			   const struct conv *sender)
{
	list_for_each (n, qpn_bucket(cm, peer, qpn)) {
		struct conv *c = CONV_OF(n, by_qpn);

		if (is_live(c->state) && c->remote_qpn == qpn &&
		    !memcmp(c->peer, peer, 16) &&
		    (!sender || is_of_sender(cm, c, sender)))
			return c;
	}
	return NULL;
}

bool conv_has_peer(struct cm *cm, struct cm *peers, const uint8_t peer[16],
		   uint32_t qpn)
{
	const struct conv *c = conv_find_qpn(cm, peer, qpn, NULL);
	const struct conv *other = c ? conv_find(peers, c->remote_id) : NULL;

	return other && is_other_end(c, other) &&
	       (is_live(other->state) || other->state == CONV_REQ_SENT ||
		other->state == CONV_REQ_WAIT);
}

bool conv_has_ended(struct cm *cm, const struct cm_owner *owner,
		    const uint8_t peer[16], uint32_t qpn)
{
	bool has_ended = false;

	list_for_each (n, qpn_bucket(cm, peer, qpn)) {
		const struct conv *c = CONV_OF(n, by_qpn);

		if (c->owner != owner || c->remote_qpn != qpn ||
		    memcmp(c->peer, peer, 16) != 0)
			continue;
		if (is_live(c->state)) /* the queue pair is connected again */
			return false;
		has_ended |=
			c->state != CONV_DREQ_SENT && !c->retry.is_unanswered;
	}
	return has_ended;
}

int conv_may_own(const struct cm *cm, const struct cm_owner *owner)
{
	return cm_owner_may_add(owner, owner ? owner->conversations : 0,
				cm->limit - cm->used);
}

void conv_set_owner(struct conv *c, struct cm_owner *owner)
{
	if (c->owner)
		c->owner->conversations--;
	c->owner = owner;
	if (owner)
		owner->conversations++;
}

int conv_new(struct cm *cm, struct cm_owner *owner, uint32_t local_id,
	     struct conv **made)
{
	int err = conv_may_own(cm, owner);
	struct conv *c;

	if (err)
		return err;
	c = &cm->conv[cm->free_count ? cm->free_list[--cm->free_count]
				     : cm->fresh++];
	cm->used++;
	memset(c, 0, sizeof(*c));
	list_init(&c->by_remote);
	list_init(&c->by_qpn);
	list_init(&c->queue);
	wheel_timer_init(&c->timer);
	c->local_id = local_id;
	while (!c->local_id || conv_find(cm, c->local_id))
		c->local_id = rng_u32(&cm->rng);
	list_init(&c->by_local);
	list_push_tail(local_bucket(cm, c->local_id), &c->by_local);
	c->transaction_id = rng_u64(&cm->rng);
	conv_set_owner(c, owner);
	*made = c;
	return 0;
}

void conv_set_remote(struct cm *cm, struct conv *c, uint32_t remote_id)
{
	list_remove(&c->by_remote);
	c->remote_id = remote_id;
	list_push_tail(remote_bucket(cm, c->peer, remote_id), &c->by_remote);
}

void conv_set_qpn(struct cm *cm, struct conv *c, uint32_t qpn)
{
	list_remove(&c->by_qpn);
	c->remote_qpn = qpn;
	/* the REQ or REP of a consumer without a queue pair has QPN 0 */
	if (qpn && !c->is_unproven)
		list_push_tail(qpn_bucket(cm, c->peer, qpn), &c->by_qpn);
}

uint16_t conv_sender(const struct cm *cm, const struct conv *active,
		     const uint8_t peer[16])
{
	const struct cm_owner *owner = active ? active->owner : NULL;

	return (uint16_t)(owner ? bucket_of(cm, &owner->number,
					    sizeof(owner->number), 1)
				: bucket_of(cm, peer, 16, 0));
}

bool conv_may_open_half(const struct cm *cm, const struct conv *c)
{
	return cm->half_open[c->sender] < cm->half_open_limit;
}

void conv_open_half(struct cm *cm, struct conv *c)
{
	cm->half_open[c->sender]++;
	c->is_half_open = true;
}

void conv_stop_waiting(struct cm *cm, struct conv *c)
{
	if (!c->is_waiting)
		return;
	c->is_waiting = false;
	cm->listener[c->listener].waiting--;
	request_wake_one(cm, c->listener);
}

void conv_settle(struct cm *cm, struct conv *c)
{
	bool was_half_open = c->is_half_open;

	/* The count changes before conv_stop_waiting, which may give the place
	 * in the backlog to the next request of this sender. */
	if (was_half_open)
		cm->half_open[c->sender]--;
	c->is_half_open = false;
	conv_stop_waiting(cm, c);
	if (was_half_open)
		request_wake_sender(cm, c->sender);
}

/*
 * If the peer repeats its message, the conversation's answer is sent again.  No
 * peer depends on the second answer.  So only CONV_ANSWERED_MAX answers are
 * kept, and the oldest one is forgotten first.
 */
static void remember_answer(struct cm *cm, struct conv *c)
{
	list_push_tail(&cm->waiting.answered, &c->queue);
	if (++cm->waiting.answered_count > CONV_ANSWERED_MAX)
		conv_enter(cm, CONV_QUEUED(cm->waiting.answered.next),
			   CONV_CLOSED);
}

/* Removes the conversation from the list `answered` or `held`, if it is in
 * one. */
static void leave_queue(struct cm *cm, struct conv *c)
{
	if (!list_is_linked(&c->queue))
		return;
	list_remove(&c->queue);
	if (c->state == CONV_ANSWERED)
		cm->waiting.answered_count--;
	else
		request_unhold(cm, c);
}

void conv_free(struct cm *cm, struct conv *c)
{
	conv_settle(cm, c);
	leave_queue(cm, c);
	wheel_cancel(&cm->wheel, &c->timer);
	list_remove(&c->by_local);
	list_remove(&c->by_remote);
	list_remove(&c->by_qpn);
	c->state = CONV_FREE;
	conv_set_owner(c, NULL);
	cm->used--;
	cm->free_list[cm->free_count++] = (uint32_t)(c - cm->conv);
}

/* Does the conversation count as half open, and in the backlog?  A request that
 * its sender has withdrawn counts until the consumer takes or releases the
 * request: the consumer's CM_REQUEST still waits, and a sender must not be able
 * to queue any number of them. */
static bool keeps_places(const struct conv *c)
{
	return c->state == CONV_REQ_RCVD || c->state == CONV_SIDR_RCVD ||
	       (c->state == CONV_CLOSED && c->is_waiting && !c->is_released);
}

void conv_enter(struct cm *cm, struct conv *c, enum conv_state state)
{
	CHECK(state != CONV_FREE && state < CONV_STATES);
	leave_queue(cm, c);
	c->state = state;
	if (!is_live(state) && !is_ending(state))
		list_remove(&c->by_qpn);
	if (!keeps_places(c))
		conv_settle(cm, c);
	if (state == CONV_ANSWERED)
		remember_answer(cm, c);
	if (state == CONV_CLOSED) {
		list_remove(&c->by_remote);
		wheel_cancel(&cm->wheel, &c->timer);
	}
	if (state == CONV_CLOSED && c->is_released)
		conv_free(cm, c);
}
