/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/near.h"
#include "direct/near_ud.h"
#include "engine/inside.h"
#include "util/bits.h"

/* What a request is reckoned as, beside its bytes. */
#define MOVED_EACH 4096

void engine_mail(struct engine *e)
{
	uint32_t letters;
	struct qp *qp;

	while ((qp = mail_take(e->ibt.hca, &letters))) {
		struct ibt_qp *q = engine_find(e, qp->qpn);

		if (q)
			near_mail(&e->ibt, q, letters);
	}
}

bool engine_is_near(const struct engine *e)
{
	return e->ibt.is_near;
}

bool engine_has_mail(const struct engine *e)
{
	return mail_is_there(e->ibt.hca);
}

void engine_asleep(struct engine *e, bool asleep)
{
	ring_publish(&e->ibt.hca->shared->is_asleep, asleep);
}

bool engine_wants_way(struct engine *e, struct engine_want *want)
{
	struct list *n = list_pop_head(&e->undecided);
	struct ibt_qp *q;

	if (!n)
		return false;
	q = CONTAINER_OF(n, struct ibt_qp, nearby);
	list_push_tail(&e->asked, n);
	want->qpn = q->qp->qpn;
	want->peer_qpn = q->qp->type == HCA_QPT_UD ? q->packets_to
						   : q->qp->attr.dest_qpn;
	want->since_ns = q->way_ns;
	return true;
}

bool engine_is_undecided(const struct engine *e)
{
	return !list_is_empty(&e->undecided);
}

bool engine_waits_for_way(const struct engine *e)
{
	return !list_is_empty(&e->asked);
}

void engine_want_anew(struct engine *e)
{
	list_take_all(&e->undecided, &e->asked);
}

bool engine_way(struct engine *e, uint32_t qpn, struct hca *far,
		struct guest *guest, void *owner)
{
	struct ibt_qp *q = engine_find(e, qpn);
	bool kept;

	if (!q || q->way != IBT_WAY_OPEN)
		return false;
	if (q->qp->type == HCA_QPT_UD)
		kept = near_ud_attach(q, far, guest, owner);
	else
		kept = far && !near_attach(&e->ibt, q, far, guest, owner);
	if (!kept && q->qp->type != HCA_QPT_UD)
		near_refuse(q);
	e->ibt.is_near |= kept;
	list_remove(&q->nearby);
	ibt_qp_activate(&e->ibt, q);
	return kept;
}

bool engine_has_kicks(const struct engine *e)
{
	return !list_is_empty(&e->kicks);
}

void *engine_kick(struct engine *e)
{
	struct list *n = list_pop_head(&e->kicks);

	return n ? CONTAINER_OF(n, struct far_link, kick)->owner : NULL;
}

void *engine_parted(struct engine *e)
{
	return near_parted(&e->ibt);
}

bool engine_gone(struct engine *e, const void *owner)
{
	struct ibt_qp *q;
	uint32_t at = 0;
	bool any = false;

	while ((q = map_next(&e->qpns, &at))) {
		if (!near_uses(q, owner))
			continue;
		any = true;
		if (q->qp->type == HCA_QPT_UD)
			near_ud_gone(&e->ibt, q, owner);
		else if (q->way == IBT_WAY_DIRECT)
			near_gone(&e->ibt, q);
	}
	return any;
}

static uint32_t turn(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	switch (q->qp->type) {
	case HCA_QPT_RC:
		return near_turn(&e->ibt, q, &e->kicks, now_ns);
	case HCA_QPT_UC:
		return near_turn_once(&e->ibt, q, &e->kicks, now_ns);
	default:
		return near_ud_turn(&e->ibt, q, &e->kicks, now_ns);
	}
}

static bool has_requests(const struct ibt_qp *q)
{
	return q->req.wqe != ring_load(&q->qp->sq.head);
}

bool engine_serve_directly(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	bool is_ud = q->qp->type == HCA_QPT_UD;
	uint32_t moved = 1;

	if (is_ud)
		q->way = e->is_direct ? IBT_WAY_DIRECT : IBT_WAY_PACKETS;
	else if (q->way == IBT_WAY_OPEN &&
		 (!e->is_direct || !q->qp->attr.ah.local))
		near_refuse(q);
	while (q->way == IBT_WAY_DIRECT && moved && has_requests(q) &&
	       e->moved < ENGINE_MOVED_MAX) {
		moved = turn(e, q, now_ns);
		e->moved += moved ? moved + MOVED_EACH : 0;
	}
	if (near_is_undecided(q) && !list_is_linked(&q->nearby)) {
		q->way_ns = now_ns;
		list_push_tail(&e->undecided, &q->nearby);
	}
	if (q->way == IBT_WAY_DIRECT && q->link &&
	    (q->link->is_asked || q->link->is_busy))
		e->look_ns = bits_min_u64(e->look_ns, now_ns + IBT_LOOK_NS);
	return q->way == IBT_WAY_PACKETS || rc_reply_is_owed(q);
}

bool engine_at_once(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	uint32_t state = q->qp->state;

	if (q->qp->type != HCA_QPT_RC || q->way != IBT_WAY_DIRECT ||
	    (state != HCA_QP_RTS && state != HCA_QP_SQD) ||
	    !list_is_empty(&q->shelf) || engine_has_tx(e))
		return false;
	e->ibt.now_ns = now_ns;
	e->moved = 0;
	if (engine_serve_directly(e, q, now_ns) || e->moved >= ENGINE_MOVED_MAX)
		ibt_qp_activate(&e->ibt, q);
	else
		ibt_qp_note(q);
	return true;
}

bool engine_is_settled(const struct engine *e)
{
	const struct ibt *t = &e->ibt;

	return !engine_has_tx(e) && !engine_has_kicks(e) &&
	       !engine_has_mail(e) && !engine_is_undecided(e) &&
	       !e->wanted_qpn && t->event_head == t->event_tail;
}
