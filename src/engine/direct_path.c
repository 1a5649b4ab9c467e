/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/initiator.h"
#include "direct/initiator_apart.h"
#include "direct/initiator_ud.h"
#include "engine/inside.h"
#include "ibt/rnr_wait.h"
#include "util/bits.h"

/* Each piece or batch of requests (execute_piece) counts as this many bytes
 * against ENGINE_MOVED_MAX, in addition to its payload. */
#define MOVED_EACH 4096

void engine_serve_notify(struct engine *e)
{
	uint32_t bits;
	struct qp *qp;

	while ((qp = notify_take(e->ibt.hca, &bits))) {
		struct ibt_qp *q = engine_find(e, qp->qpn);

		if (q)
			initiator_notified(&e->ibt, q, bits);
	}
}

bool engine_is_direct(const struct engine *e)
{
	return e->ibt.direct.is_used;
}

bool engine_has_notify(const struct engine *e)
{
	return notify_pending(e->ibt.hca);
}

void engine_asleep(struct engine *e, bool asleep)
{
	/* Orders the store of is_asleep before the caller's load of the notify
	 * bits.  A peer sets a notify bit before it loads is_asleep
	 * (notify_post).  Without this order each could miss the other's store,
	 * and this process would sleep with a notify bit set. */
	shared_publish(&e->ibt.hca->shared->is_asleep, asleep);
}

bool engine_wants_path(struct engine *e, struct engine_want *want)
{
	struct list *n = list_pop_head(&e->paths.undecided);
	struct ibt_qp *q;

	if (!n)
		return false;
	q = CONTAINER_OF(n, struct ibt_qp, direct.waiting);
	list_push_tail(&e->paths.asked, n);
	want->qpn = q->qp->qpn;
	want->peer_qpn = q->qp->type == HCA_QPT_UD ? q->direct.packets_to
						   : q->qp->attr.dest_qpn;
	want->post_lock = q->direct.apart.lock;
	want->since_ns = q->direct.path_since_ns;
	want->by_lid = q->qp->is_by_lid ? &q->qp->attr : NULL;
	return true;
}

bool engine_is_undecided(const struct engine *e)
{
	return !list_is_empty(&e->paths.undecided);
}

bool engine_waits_for_path(const struct engine *e)
{
	return !list_is_empty(&e->paths.asked);
}

void engine_want_path_again(struct engine *e)
{
	list_take_all(&e->paths.undecided, &e->paths.asked);
}

void engine_subnet(struct engine *e, const shared_u32 *changes)
{
	e->ibt.direct.changes = changes;
}

void engine_set_way(struct engine *e, uint32_t qpn, const struct hca_way *way)
{
	struct ibt_qp *q = engine_find(e, qpn);

	if (q)
		q->direct.way = *way;
}

/* Ends the wait of a QP whose path is direct.  If `target` is the adapter to
 * which the QP is attached (initiator_attach), the QP goes on; otherwise it
 * sends packets from now on. */
static void answer_again(struct engine *e, struct ibt_qp *q,
			 const struct hca *target)
{
	if (!target || target->arena.base != q->direct.link->hca->arena.base) {
		initiator_leave(&e->ibt, q);
		return;
	}
	q->direct.is_asking = false;
	q->direct.may_execute = true;
	list_remove(&q->direct.waiting);
	ibt_qp_activate(&e->ibt, q);
}

bool engine_set_path(struct engine *e, uint32_t qpn, struct hca *target,
		     struct access *access, void *owner, bool apart)
{
	struct ibt_qp *q = engine_find(e, qpn);
	bool kept;

	if (q && q->direct.is_asking)
		answer_again(e, q, target);
	if (!q || q->direct.path != IBT_PATH_UNDECIDED)
		return false;
	if (q->qp->type == HCA_QPT_UD)
		kept = initiator_ud_attach(q, target, access, owner);
	else
		kept = target &&
		       !initiator_attach(&e->ibt, q, target, access, owner);
	if (!kept && q->qp->type != HCA_QPT_UD)
		initiator_refuse(q);
	e->ibt.direct.is_used |= kept;
	shared_store(&q->direct.apart.is_worth_it,
		     kept && apart && q->qp->type == HCA_QPT_RC);
	list_remove(&q->direct.waiting);
	ibt_qp_activate(&e->ibt, q);
	return kept;
}

bool engine_has_wakes(const struct engine *e)
{
	return !list_is_empty(&e->to_wake);
}

void *engine_wants_wake(struct engine *e)
{
	struct list *n = list_pop_head(&e->to_wake);

	return n ? CONTAINER_OF(n, struct target_ref, to_wake)->owner : NULL;
}

void *engine_released(struct engine *e)
{
	return initiator_released(&e->ibt);
}

/* Executes the next requests of q, or a piece of a long one.  Returns the bytes
 * copied; adds 1 for each request or piece of a connected QP, and the bytes of
 * the GRH for a datagram.  0: no request was executed. */
static uint32_t execute_piece(struct engine *e, struct ibt_qp *q,
			      uint64_t now_ns)
{
	switch (q->qp->type) {
	case HCA_QPT_RC:
		return initiator_turn(&e->ibt, q, &e->to_wake, now_ns);
	case HCA_QPT_UC:
		return initiator_turn_unreliable(&e->ibt, q, &e->to_wake,
						 now_ns);
	default:
		return initiator_ud_turn(&e->ibt, q, &e->to_wake, now_ns);
	}
}

static bool has_requests(const struct ibt_qp *q)
{
	return q->req.wqe != shared_load(&q->qp->sq.head);
}

/* May the path of q, a connected QP, be direct? */
static bool may_go_direct(const struct engine *e, const struct ibt_qp *q)
{
	if (!e->is_direct || !q->qp->is_by_lid)
		return e->is_direct && q->qp->attr.ah.local;
	return e->ibt.direct.changes && q->qp->type == HCA_QPT_RC &&
	       !q->qp->attr.alt_ah.dlid;
}

/* Puts q on the list of QPs that wait for engine_set_path. */
static void want_path(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	q->direct.path_since_ns = now_ns;
	list_push_tail(&e->paths.undecided, &q->direct.waiting);
}

/* Looks whether the path of q, which is direct, may stay direct.  Returns
 * whether the next request may be executed. */
static bool goes_on(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	switch (initiator_next(q)) {
	case INITIATOR_EXECUTE:
		return true;
	case INITIATOR_LEAVE:
		initiator_leave(&e->ibt, q);
		return false;
	case INITIATOR_ASK:
		break;
	}
	if (!q->direct.is_asking) {
		q->direct.is_asking = true;
		list_remove(&q->direct.waiting);
		want_path(e, q, now_ns);
	}
	return false;
}

bool engine_serve_directly(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	bool is_ud = q->qp->type == HCA_QPT_UD;
	uint32_t moved = 1;

	initiator_apart_tell(&e->ibt, q);
	/* initiator_ud_turn then sets the path for each datagram. */
	if (is_ud)
		q->direct.path = e->is_direct && !q->qp->is_by_lid
					 ? IBT_PATH_DIRECT
					 : IBT_PATH_PACKETS;
	else if (q->direct.path == IBT_PATH_UNDECIDED && !may_go_direct(e, q))
		initiator_refuse(q);
	while (q->direct.path == IBT_PATH_DIRECT && moved && has_requests(q) &&
	       e->moved < ENGINE_MOVED_MAX && goes_on(e, q, now_ns)) {
		moved = execute_piece(e, q, now_ns);
		if (moved)
			q->direct.may_execute = false;
		e->moved += moved ? moved + MOVED_EACH : 0;
	}
	if (initiator_is_undecided(q) && !list_is_linked(&q->direct.waiting))
		want_path(e, q, now_ns);
	if (q->direct.path == IBT_PATH_DIRECT && q->direct.link &&
	    (q->direct.link->is_asked || q->direct.link->is_busy))
		e->look_ns = bits_min_u64(e->look_ns, now_ns + IBT_LOOK_NS);
	return q->direct.path == IBT_PATH_PACKETS || rc_reply_is_due(q);
}

bool engine_qp_posts_apart(const struct ibt_qp *q)
{
	return shared_load(&q->direct.apart.is_worth_it);
}

uint32_t engine_post_lock_of(const struct cq *send_cq)
{
	return send_cq->id % ENGINE_POST_LOCKS;
}

uint32_t engine_qp_post_lock(const struct ibt_qp *q)
{
	return q->direct.apart.lock;
}

bool engine_post_apart(struct engine *e, struct ibt_qp *q, uint64_t now_ns,
		       void **to_wake)
{
	return initiator_apart_post(&e->ibt, q, now_ns, to_wake);
}

bool engine_awaits_receive(const struct engine *e, uint32_t number)
{
	return shared_load(&e->ibt.direct.awaiting[number].is_any);
}

bool engine_resume_apart(struct engine *e, uint32_t number, uint64_t now_ns,
			 struct ibt_qp **left, void **to_wake)
{
	struct ibt_qp *q = rnr_wait_next(&e->ibt, number);
	uint32_t at;

	*left = NULL;
	*to_wake = NULL;
	if (!q || !initiator_apart_may_resume(&e->ibt, q, now_ns))
		return false;
	at = q->req.wqe;
	if (!initiator_apart_resume(&e->ibt, q, now_ns, to_wake))
		*left = q;
	return *left || q->req.wqe != at;
}

bool engine_qp_gathers(struct engine *e, const struct ibt_qp *q)
{
	return initiator_apart_gathers(&e->ibt, q);
}

bool engine_post_direct(struct engine *e, struct ibt_qp *q, uint64_t now_ns)
{
	uint32_t state = q->qp->state;

	if (q->qp->type != HCA_QPT_RC || q->direct.path != IBT_PATH_DIRECT ||
	    (state != HCA_QP_RTS && state != HCA_QP_SQD) ||
	    !list_is_empty(&q->pending.packets) || engine_has_tx(e))
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

	return !engine_has_tx(e) && !engine_has_wakes(e) &&
	       !engine_has_notify(e) && !engine_is_undecided(e) &&
	       !e->wanted_qpn && t->events.head == t->events.tail;
}
