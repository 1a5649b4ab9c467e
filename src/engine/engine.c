/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "direct/initiator.h"
#include "direct/initiator_apart.h"
#include "direct/initiator_ud.h"
#include "engine/inside.h"
#include "ibt/mcast.h"
#include "ibt/migration.h"
#include "ibt/rx_pending.h"
#include "iwarp/stream.h"
#include "util/alloc.h"
#include "util/bits.h"
#include "util/prefetch.h"

/* Makes the state of flow control for the receivers of all classes, if there
 * are classes.  False: no memory. */
static bool make_credits(struct engine *e, bool is_off)
{
	e->inbox.is_off = is_off;
	if (!e->class_of)
		return true;
	e->credits = calloc(CREDIT_CLASSES, sizeof(*e->credits));
	for (uint32_t i = 0; e->credits && i < CREDIT_CLASSES; i++)
		e->credits[i].is_off = is_off;
	return e->credits;
}

struct engine *engine_new(const struct engine_config *config, uint64_t now_ns)
{
	struct engine *e = alloc_apart(sizeof(*e));

	if (!e)
		return NULL;
	e->ibt.hca = config->hca;
	e->ibt.window_max = bits_max_u32(config->window, IBT_WINDOW_START);
	e->ibt.strict = config->strict;
	e->ibt.patience_ns = config->patience_ns;
	e->class_of = config->class_of;
	e->starved_ns = UINT64_MAX;
	e->is_direct = config->direct;
	e->ibt.direct.piece = config->piece ? config->piece : INITIATOR_PIECE;
	e->ibt.direct.has_no_eager = config->without.eager;
	e->look_ns = UINT64_MAX;
	list_init(&e->starved);
	list_init(&e->streams);
	list_init(&e->paths.undecided);
	list_init(&e->paths.asked);
	list_init(&e->to_wake);
	if (!make_credits(e, config->without.credits) ||
	    ibt_init(&e->ibt, now_ns)) {
		free(e->credits);
		free(e);
		return NULL;
	}
	if (engine_sources_init(&e->sources, config->asks_sources,
				e->class_of)) {
		ibt_fini(&e->ibt);
		free(e->credits);
		free(e);
		return NULL;
	}
	engine_suspects_init(
		&e->suspects,
		arena_at(&config->hca->arena, config->hca->shared->suspects));
	shm_ack_init(&e->shm_ack, &e->ibt,
		     config->without.acks ? NULL : e->credits, e->class_of);
	return e;
}

void engine_free(struct engine *e)
{
	while (engine_released(e))
		;
	engine_sources_fini(&e->sources);
	map_fini(&e->qpns);
	ibt_fini(&e->ibt);
	free(e->credits);
	free(e);
}

const struct engine_counters *engine_counters(const struct engine *e,
					      uint32_t device)
{
	return &e->ibt.counters[device];
}

struct ibt_qp *engine_qp_find(const struct engine *e, uint32_t qpn)
{
	return engine_find(e, qpn);
}

bool engine_qp_has_comps(const struct engine *e, uint32_t qpn)
{
	const struct ibt_qp *q = engine_find(e, qpn);
	struct hca *h = e->ibt.hca;

	return q && q->qp->state != HCA_QP_ERR &&
	       (cq_has_of(h, arena_at(&h->arena, q->qp->send_cq), q->qp) ||
		cq_has_of(h, arena_at(&h->arena, q->qp->recv_cq), q->qp));
}

uint32_t engine_qp_qpn(const struct ibt_qp *q)
{
	return q->qp->qpn;
}

bool engine_qp_is_iwarp(const struct ibt_qp *q)
{
	return q->qp->is_iwarp;
}

struct ibt_qp *engine_qp_add(struct engine *e, struct qp *qp)
{
	struct ibt_qp *q = alloc_apart(sizeof(*q));

	if (!q || ibt_qp_init(&e->ibt, q, qp))
		goto free_it;
	if (map_add(&e->qpns, qp->qpn, q))
		goto undo_init;
	engine_suspects_has_qpn(&e->suspects, qp->qpn);
	shm_ack_added(&e->shm_ack, q);
	/* The lock depends on the completion queue, see engine_post_lock_of. */
	q->direct.apart.lock =
		engine_post_lock_of(arena_at(&e->ibt.hca->arena, qp->send_cq));
	return q;
undo_init:
	ibt_qp_fini(&e->ibt, q);
free_it:
	free(q);
	return NULL;
}

/*
 * Serves the last notify bits that peers have set for q, as far as they concern
 * more than q: programs may wait for the events of a completion queue or an SRQ
 * that other QPs use, too.  The exchange orders the load of the bits before
 * initiator_notified's loads of the queues; a peer writes the queues before it
 * sets a bit (notify_post).  Without this order an event could be missed.
 */
static void serve_last_bits(struct engine *e, struct ibt_qp *q)
{
	uint32_t bits = atomic_exchange(&qp_target(q->qp)->notify, 0);

	initiator_notified(&e->ibt, q,
			   bits & (QP_NOTIFY_CQ | QP_NOTIFY_LATER |
				   QP_NOTIFY_FULL | QP_NOTIFY_LIMIT));
}

void engine_qp_remove(struct engine *e, struct ibt_qp *q)
{
	serve_last_bits(e, q);
	map_remove(&e->qpns, q->qp->qpn);
	shm_ack_removed(&e->shm_ack, q);
	for (uint32_t i = e->ibt.events.tail; i != e->ibt.events.head; i++) {
		struct engine_event *v = ibt_event_at(&e->ibt, i);

		/* Events of CQs and SRQs stay, and so do explanations.  The
		 * other events have the cookie of the QP, which is about to be
		 * freed.  Each of them becomes an explanation without a cause,
		 * which engine_events leaves out. */
		if (v->qpn == q->qp->qpn && v->type != ENGINE_CQ_EVENT &&
		    v->type != ENGINE_CQ_ERR && v->type != ENGINE_SRQ_LIMIT &&
		    v->type != ENGINE_EXPLAIN)
			v->type = ENGINE_EXPLAIN,
			v->explain.cause = EXPLAIN_NONE;
	}
	stream_close(q);
	initiator_fini(&e->ibt, q);
	ibt_qp_fini(&e->ibt, q);
	free(q);
}

uint32_t engine_qp_count(const struct engine *e)
{
	return e->qpns.count;
}

void engine_qp_expect(const struct ibt_qp *q)
{
	prefetch(q, sizeof(*q));
}

struct mpsc_node *engine_qp_doorbell(struct ibt_qp *q)
{
	return &q->doorbell;
}

struct ibt_qp *engine_qp_of_doorbell(struct mpsc_node *n)
{
	return CONTAINER_OF(n, struct ibt_qp, doorbell);
}

uint32_t engine_qp_flying(const struct ibt_qp *q)
{
	return shared_load(&q->flying);
}

bool engine_qp_is_unanswered(const struct ibt_qp *q)
{
	return shared_load(&q->is_unanswered);
}

alock_owner engine_qp_accessor(const struct ibt_qp *q)
{
	return alock_holder(&qp_target(q->qp)->lock);
}

/* Notes the addresses of a connection, by which is_from_peer knows its
 * packets. */
static void set_addresses(const struct ibt *t, struct ibt_qp *q,
			  const uint8_t from[16])
{
	const struct hca_ah *ah = &q->qp->attr.ah;

	if (q->qp->is_by_lid) {
		ibt_qp_set_lids(t, q);
		return;
	}
	memcpy(q->self.ip, from, 16);
	memcpy(q->peer.ip, ah->dgid, 16);
}

static void change_state(struct engine *e, struct ibt_qp *q,
			 const struct hca_qp_attr *attr, uint32_t mask,
			 const uint8_t from[16])
{
	struct qp *qp = q->qp;
	uint32_t old = qp->attr.path_mig_state;

	qp_modify_store(qp, attr, mask);
	/* The subnet's answer was about the old path, so the subnet is asked
	 * again. */
	if (mask & (HCA_QP_AV | HCA_QP_PKEY_INDEX | HCA_QP_PORT)) {
		q->direct.way.changes--;
		q->direct.may_execute = false;
	}
	if (mask & HCA_QP_AV) {
		set_addresses(&e->ibt, q, from);
		q->self.port = attr->ah.port ? attr->ah.port : ROCEV2_PORT;
		q->peer.port = ROCEV2_PORT;
		q->source.until_ns = 0;
	}
	if (mask & HCA_QP_STATE && attr->qp_state == HCA_QP_INIT &&
	    e->inbox.page)
		closed_open(&e->inbox.page->closed, qp->qpn);
	if (mask & HCA_QP_STATE && attr->qp_state == HCA_QP_RESET)
		stream_close(q);
	if ((mask & HCA_QP_STATE) &&
	    (attr->qp_state != qp->state || attr->qp_state == HCA_QP_RESET))
		ibt_qp_enter(&e->ibt, q, (enum hca_qp_state)attr->qp_state);
	if (mask & HCA_QP_PATH_MIG_STATE)
		migration_modified(&e->ibt, q, old);
	shm_ack_modified(&e->shm_ack, q);
}

int engine_qp_check(struct engine *e, struct ibt_qp *q,
		    const struct hca_qp_attr *attr, uint32_t mask,
		    uint64_t now_ns, const char **why)
{
	int err;

	e->ibt.now_ns = now_ns;
	/* A notify bit may say that the QP has failed. */
	engine_serve_notify(e);
	err = qp_modify_check(e->ibt.hca, q->qp, attr, mask, why);
	if (!err && (mask & HCA_QP_MAX_DEST_RD_ATOMIC) &&
	    ibt_qp_room(q, attr->max_dest_rd_atomic)) {
		*why = "there is no memory for the responses to "
		       "max_dest_rd_atomic requests; use a smaller value";
		err = -ENOMEM;
	}
	return err;
}

int engine_qp_modify(struct engine *e, struct ibt_qp *q,
		     const struct hca_qp_attr *attr, uint32_t mask,
		     const uint8_t from[16], uint64_t now_ns,
		     const char **why) NO_LOCK_ANALYSIS
{
	struct qp *qp = q->qp;
	bool fails = (mask & HCA_QP_STATE) && attr->qp_state == HCA_QP_ERR;
	int err = engine_qp_check(e, q, attr, mask, now_ns, why);

	/* While is_wanted is set, peers do not take the responder lock.  The
	 * flag stays set after -EBUSY, until the caller has tried again.  The
	 * store is a hint, which orders nothing. */
	shared_store(&qp_target(qp)->is_wanted, !err && !fails);
	if (!err && !fails && !rq_enter_own(e->ibt.hca, qp))
		return -EBUSY;
	if (!err)
		change_state(e, q, attr, mask, from);
	shared_store(&qp_target(qp)->is_wanted, 0);
	if (!err && !fails)
		rq_leave(qp);
	return err;
}

/* Does a request that has begun wait for its completion, while q is to drain?
 * A stream counts no PSNs. */
static bool is_draining(const struct ibt_qp *q)
{
	const struct rc_req *r = &q->req;

	if (!r->draining || q->direct.awaits_accesses)
		return r->draining;
	if (q->stream)
		return q->qp->state == HCA_QP_SQD && !stream_tx_is_drained(q);
	return !serial24_is_equal(r->una, r->max) ||
	       (q->qp->type == HCA_QPT_RC && rc_req_has_begun(q));
}

void engine_qp_query(const struct engine *e, const struct ibt_qp *q,
		     struct hca_qp_attr *attr)
{
	const struct rc_req *r = &q->req;

	*attr = q->qp->attr;
	attr->qp_state = attr->cur_qp_state = q->qp->state;
	if (q->qp->state >= HCA_QP_RTR)
		attr->rq_psn = q->resp.epsn.v;
	if (q->qp->state >= HCA_QP_RTS)
		attr->sq_psn = r->max.v;
	attr->sq_draining = is_draining(q);
}

void engine_publish(struct engine *e)
{
	credit_show(e->inbox.page, e->ibt.hca->shared->links, e->ibt.counters);
}

void engine_rx_empty(struct engine *e)
{
	credit_empty(&e->inbox);
}

bool engine_owes_look(const struct engine *e)
{
	return credit_owes_look(&e->inbox);
}

void engine_inbox(struct engine *e, struct credit_page *page, uint32_t class,
		  uint32_t buffer_bytes, bool apart)
{
	e->class = class;
	credit_open(&e->inbox, page, buffer_bytes, apart);
	/* Packets of this process to itself need not wait for a page. */
	if (e->credits)
		e->credits[class % CREDIT_CLASSES].page = page;
}

void engine_joins(struct engine *e)
{
	credit_joins(&e->inbox);
}

uint32_t engine_wants_page(struct engine *e)
{
	uint32_t qpn = e->wanted_qpn;

	e->wanted_qpn = 0;
	return qpn;
}

static void activate_starved(struct engine *e)
{
	struct list *n;

	e->starved_ns = UINT64_MAX;
	while ((n = list_pop_head(&e->starved)))
		list_push_tail(&e->ibt.active, n);
}

const struct credit_page *engine_page_of(const struct engine *e, uint32_t qpn)
{
	const struct credit *c = engine_credit_of(e, qpn);

	return c ? c->page : NULL;
}

void engine_page(struct engine *e, uint32_t qpn, const struct credit_page *page)
{
	struct credit *c = engine_credit_of(e, qpn);

	if (c) {
		credit_page_is(c, page);
		activate_starved(e);
	}
}

int engine_mcast_attach(struct engine *e, struct ibt_qp *q,
			const uint8_t gid[16])
{
	return mcast_attach(&e->ibt, q, gid);
}

int engine_mcast_attach_alias(struct engine *e, struct ibt_qp *q,
			      const uint8_t named[16], const uint8_t gid[16])
{
	return mcast_attach_alias(&e->ibt, q, named, gid);
}

int engine_mcast_detach(struct engine *e, struct ibt_qp *q,
			const uint8_t gid[16])
{
	return mcast_detach(&e->ibt, q, gid);
}

bool engine_mcast_is_used(const struct engine *e, const uint8_t gid[16])
{
	return mcast_has(&e->ibt, gid);
}

void engine_cq_remove(struct engine *e, const struct cq *cq)
{
	cq_moderation_forget(&e->ibt, cq);
}

void engine_doorbell(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	e->ibt.now_ns = now_ns;
	initiator_apart_tell(&e->ibt, q);
	if (q->qp->state == HCA_QP_ERR)
		ibt_qp_flush(&e->ibt, q);
	else if (q->qp->state == HCA_QP_SQE)
		ibt_qp_flush_sends(&e->ibt, q);
	else
		ibt_qp_activate(&e->ibt, q);
	rx_pending_serve(&e->ibt, q);
}

/* Ends q's wait for a receive, whose timer has expired.  An RC QP waits for a
 * receive of the peer, a UC or UD QP for a receive of its own. */
static void expire_rnr_timer(struct engine *e, struct ibt_qp *q,
			     uint64_t now_ns)
{
	if (q->qp->type == HCA_QPT_RC)
		rc_comp_rnr_over(&e->ibt, q, now_ns);
	else
		rx_pending_serve(&e->ibt, q);
}

bool engine_is_choked(const struct engine *e)
{
	return rx_pending_is_full(&e->ibt);
}

void engine_tick(struct engine *e, uint64_t now_ns)
{
	struct wheel_timer *t;

	e->ibt.now_ns = now_ns;
	engine_serve_notify(e);
	shm_ack_tick(&e->shm_ack, now_ns);
	/* The caller stops holding ACKs after a turn that receives nothing.
	 * Packets for other QPs can delay such a turn for long. */
	if (engine_owes(e) && now_ns - e->ibt.owing_ns >= IBT_OWE_NS)
		engine_hold_acks(e, false);
	e->look_ns = initiator_look(&e->ibt);
	ibt_qp_end_waits(&e->ibt);
	if (now_ns >= e->starved_ns)
		activate_starved(e);
	while ((t = wheel_expire(&e->ibt.wheel, now_ns))) {
		if (t->kind == IBT_TIMER_ACK)
			rc_comp_timeout(
				&e->ibt,
				CONTAINER_OF(t, struct ibt_qp, timers.ack),
				now_ns);
		else if (t->kind == IBT_TIMER_CQ_MODERATION)
			cq_moderation_expire(&e->ibt, t);
		else if (t->kind == IBT_TIMER_REORDER)
			rc_resp_reorder_over(
				&e->ibt,
				CONTAINER_OF(t, struct ibt_qp, timers.reorder));
		else
			expire_rnr_timer(
				e, CONTAINER_OF(t, struct ibt_qp, timers.rnr),
				now_ns);
	}
}

void engine_peer_state(struct engine *e, uint32_t qpn, uint32_t connection,
		       enum engine_peer state, uint64_t now_ns)
{
	struct ibt_qp *q = engine_find(e, qpn);

	e->ibt.now_ns = now_ns;
	if (q && q->qp->connection == connection)
		rc_comp_peer(&e->ibt, q, state, now_ns);
}

void engine_was_asleep(struct engine *e, uint64_t slept_ns, uint64_t now_ns)
{
	struct ibt_qp *q;
	uint32_t at = 0;

	while ((q = map_next(&e->qpns, &at))) {
		rc_comp_asleep(&e->ibt, q, slept_ns, now_ns);
		rx_pending_asleep(q, slept_ns);
		initiator_ud_asleep(q, slept_ns, now_ns);
	}
}

void engine_polled(struct engine *e, uint64_t now_ns)
{
	e->ibt.polled_ns = now_ns;
}

void engine_hold_acks(struct engine *e, bool hold)
{
	e->ibt.holds_acks = hold;
	for (struct list *n; !hold && (n = list_pop_head(&e->ibt.owing));)
		ibt_qp_activate(&e->ibt, CONTAINER_OF(n, struct ibt_qp, owing));
}

void engine_force_responses(struct engine *e, bool forced)
{
	engine_hold_acks(e, false);
	shm_ack_force(&e->shm_ack, forced);
	activate_starved(e);
}

bool engine_owes(const struct engine *e)
{
	return !list_is_empty(&e->ibt.owing);
}

struct shm_ack *engine_shm_ack(struct engine *e)
{
	return &e->shm_ack;
}

size_t engine_events(struct engine *e, struct engine_event *events, size_t max)
{
	struct ibt *t = &e->ibt;
	size_t n = 0;

	while (n < max && t->events.tail != t->events.head) {
		const struct engine_event *v =
			ibt_event_at(t, t->events.tail++);

		/* see engine_qp_remove */
		if (v->type != ENGINE_EXPLAIN ||
		    v->explain.cause != EXPLAIN_NONE)
			events[n++] = *v;
	}
	return n;
}

uint64_t engine_deadline(const struct engine *e)
{
	return bits_min_u64(
		bits_min_u64(wheel_deadline(&e->ibt.wheel),
			     shm_ack_deadline(&e->shm_ack)),
		bits_min_u64(bits_min_u64(e->starved_ns, e->look_ns),
			     e->ibt.direct.leaving_look_ns));
}

bool engine_has_tx(const struct engine *e)
{
	return e->burst.first != e->burst.count ||
	       !list_is_empty(&e->ibt.active);
}

bool engine_is_idle(const struct engine *e)
{
	const struct ibt_held_pool *held = &e->ibt.held;
	uint32_t count = 0;

	for (const struct list *n = held->free.next; n != &held->free;
	     n = n->next)
		count++;
	return count == held->used && list_is_empty(&e->ibt.active) &&
	       wheel_deadline(&e->ibt.wheel) == WHEEL_NEVER;
}
