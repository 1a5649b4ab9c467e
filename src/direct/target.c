/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/target.h"

#include <string.h>

#include "direct/inside.h"
#include "util/alloc.h"
#include "util/bits.h"
#include "util/inaddr.h"
#include "util/prefetch.h"
#include "util/step.h"

/* Reads a word of the arena once, since the arena's owner may write it at the
 * same time. */
#define SEEN(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

struct target_ref *target_new(void)
{
	struct target_ref *l = alloc_apart(sizeof(*l));

	if (l)
		list_init(&l->to_wake);
	return l;
}

/* Are the bounce buffers inside the part of the arena that peers write, and is
 * their number sound? */
static bool has_bounces(const struct arena *a, const struct wq *q)
{
	uint32_t n = q->bounces;

	return n && n <= WQ_BOUNCES && !(n & (n - 1)) &&
	       arena_shares(a, q->bounce, n * WQ_BOUNCE_BYTES);
}

/* Are all places that l->qp, the copy of the queue pair, names inside the
 * arena?  The places that the initiator writes must be in the peers' part of
 * the arena. */
static bool has_places(const struct target_ref *l)
{
	const struct arena *a = &l->hca->arena;
	const struct qp *qp = &l->qp;
	uint64_t bytes = (uint64_t)qp->rq.size * qp->rq.stride;
	aoff target = (uintptr_t)qp_target(qp) - (uintptr_t)a->base;

	return wq_is_sound(l->hca, &qp->rq, WQE_EAGER_BYTES) &&
	       arena_shares(a, qp->rq.slots, bytes) &&
	       (!qp->rq.bounces || has_bounces(a, &qp->rq)) &&
	       arena_shares(a, target, sizeof(struct qp_target)) &&
	       qp->stats.row < HCA_MAX_QP &&
	       (!qp->srq || inside_at(l->hca, qp->srq, sizeof(struct srq))) &&
	       (!qp->recv_cq ||
		inside_at(l->hca, qp->recv_cq, sizeof(struct cq)));
}

/*
 * Copies the members of the queue pair at `at` that do not change while the
 * queue pair exists.  False: no queue pair with the target's QPN lies there, or
 * its members make no sense.
 */
static bool read_places(struct target_ref *l, aoff at)
{
	const struct qp *there = inside_at(l->hca, at, sizeof(*there));
	struct qp *qp = &l->qp;

	if (!there || SEEN(there->qpn) != l->qpn)
		return false;
	*qp = (struct qp){
		.self = at,
		.qpn = l->qpn,
		.serial = SEEN(there->serial),
		.type = SEEN(there->type),
		.pd = SEEN(there->pd),
		.recv_pd = SEEN(there->recv_pd),
		.recv_cq = SEEN(there->recv_cq),
		.srq = SEEN(there->srq),
		.peer_at =
			(uintptr_t)there + SEEN(there->peer_at) - (uintptr_t)qp,
		.stats.row = SEEN(there->stats.row),
		.rq.size = SEEN(there->rq.size),
		.rq.depth = SEEN(there->rq.depth),
		.rq.stride = SEEN(there->rq.stride),
		.rq.max_sge = SEEN(there->rq.max_sge),
		.rq.slots = SEEN(there->rq.slots),
		.rq.bounces = SEEN(there->rq.bounces),
		.rq.bounce = SEEN(there->rq.bounce),
		/* Another number than the owner's, so that copy_state copies
		 * attr. */
		.attr_serial = SEEN(there->attr_serial) - 1,
	};
	if (has_places(l))
		return true;
	qp->self = 0;
	return false;
}

/* Is the QP at `at` the QP that was copied last? */
static bool is_there(const struct target_ref *l, aoff at)
{
	const struct qp *there;

	if (!at || at != l->qp.self)
		return false;
	there = arena_at(&l->hca->arena, at);
	return SEEN(there->qpn) == l->qpn &&
	       SEEN(there->serial) == l->qp.serial;
}

static bool find_at(struct target_ref *l, aoff at)
{
	return is_there(l, at) || read_places(l, at);
}

static bool find_in_row(struct target_ref *l, const aoff *rows, uint32_t row)
{
	if (!find_at(l, __atomic_load_n(&rows[row], __ATOMIC_ACQUIRE)))
		return false;
	l->row = row;
	shared_store(&l->hca->qp_row, row);
	return true;
}

/* Searches the first `top` rows, on both sides of the row where the last
 * initiator found its target: programs mostly connect queue pairs in the order
 * in which they make them, and a search of all rows takes long if there are
 * thousands. */
static bool search_rows(struct target_ref *l, const aoff *rows, uint32_t top)
{
	uint32_t from = shared_load(&l->hca->qp_row);

	from = from < top ? from : 0;
	for (uint32_t d = 0; d < top; d++)
		if ((from + d < top && find_in_row(l, rows, from + d)) ||
		    (d && d <= from && find_in_row(l, rows, from - d)))
			return true;
	return false;
}

/*
 * Returns the copy of the target; NULL: there is no such QP, or its members
 * make no sense.  The attributes and the state in the copy may be old:
 * copy_state reads them.
 *
 * The acquire loads of the rows pair with the release store in
 * publish_row (hca/qp.c): they order the load of a row before the loads of the
 * QP's members.  Without this order the copy could have values that the memory
 * had before the QP was made.
 */
static struct qp *find_qp(struct target_ref *l)
{
	const struct hca_shared *s = l->hca->shared;
	aoff table = SEEN(s->qps);
	const aoff *rows = inside_at(l->hca, table, HCA_MAX_QP * sizeof(aoff));
	uint32_t top = bits_min_u32(SEEN(s->qp_top), HCA_MAX_QP);

	if (!rows)
		return NULL;
	if (find_at(l, __atomic_load_n(&rows[l->row], __ATOMIC_ACQUIRE)) ||
	    search_rows(l, rows, top))
		return &l->qp;
	return NULL;
}

static void copy_attributes(struct qp *qp, const struct qp *there)
{
	const struct hca_qp_attr *a = &there->attr;

	qp->attr_serial = SEEN(there->attr_serial);
	qp->attr.dest_qpn = SEEN(a->dest_qpn);
	qp->attr.rq_psn = SEEN(a->rq_psn);
	qp->attr.qkey = SEEN(a->qkey);
	qp->attr.access_flags = SEEN(a->access_flags);
	qp->attr.min_rnr_timer = SEEN(a->min_rnr_timer);
	qp->attr.max_dest_rd_atomic = SEEN(a->max_dest_rd_atomic);
	memcpy(qp->attr.ah.dgid, a->ah.dgid, sizeof(a->ah.dgid));
	memcpy(qp->attr.ah.sgid, a->ah.sgid, sizeof(a->ah.sgid));
	qp->attr.ah.is_global = SEEN(a->ah.is_global);
	qp->attr.ah.dlid = SEEN(a->ah.dlid);
	qp->attr.ah.sl = SEEN(a->ah.sl);
	qp->attr.ah.src_path_bits = SEEN(a->ah.src_path_bits);
	qp->attr.port_num = SEEN(a->port_num);
	qp->attr.pkey_index = SEEN(a->pkey_index);
	qp->attr.alt_ah.dlid = SEEN(a->alt_ah.dlid);
}

/*
 * Called under the responder lock.  Copies the members that the owner changes
 * only under that lock, and the state, which may become ERR at any time.  The
 * copy's indices of posted and collected receives get the value for which no
 * receive is posted.  inside_see_posted and inside_see_collected read the
 * owner's indices when they are needed.
 */
static void copy_state(const struct target_ref *l, struct qp *qp)
{
	const struct qp *there = inside_original(l, qp);

	qp->state = SEEN(there->state);
	qp->connection = SEEN(there->connection);
	if (qp->attr_serial != SEEN(there->attr_serial))
		copy_attributes(qp, there);
	shared_store(&qp->rq.head, rq_cursor(qp));
	shared_store(&qp->rq.collected, rq_cursor(qp));
}

/* Is the target still connected to the initiator, in the connection for which
 * *l was made (IBTA 9.6.1.1)?  A connection of UC takes any PSN. */
static bool is_ours(const struct target_ref *l, const struct qp *qp)
{
	return qp->attr.dest_qpn == l->src_qpn &&
	       (l->type != HCA_QPT_RC || qp->attr.rq_psn == l->src_psn) &&
	       (!l->connection || l->connection == qp->connection) &&
	       (l->way || inaddr_has_same_ip(qp->attr.ah.dgid, l->src_ip));
}

/* Is the SGID of each path the DGID of the other path (IBTA 9.6.1.2.2)?  True
 * also if neither path has a GRH.  False if only one has a GRH: the subnet was
 * asked about the GIDs of the initiator's path alone. */
static bool has_gids(const struct hca_ah *one, const struct hca_ah *two)
{
	return one->is_global == two->is_global &&
	       (!one->is_global || (!memcmp(one->sgid, two->dgid, 16) &&
				    !memcmp(one->dgid, two->sgid, 16)));
}

/* The subnet has said by which path it delivers the packets that the target
 * sends back (struct hca_way).  Does the target send by this path?  True for a
 * connection that is not by LID.  False for a target with an alternate path:
 * such a target needs packets, because only a packet can ask for a
 * migration. */
static bool is_way_back(const struct target_ref *l, const struct qp *qp)
{
	const struct hca_qp_attr *a = &qp->attr;
	const struct hca_way *way = l->way;

	return !way ||
	       (a->ah.dlid == way->slid && a->port_num == way->port &&
		(a->ah.src_path_bits & way->path_mask) == way->path_bits &&
		a->ah.sl == l->ah->sl && a->pkey_index < HCA_MAX_PKEYS &&
		way->pkeys >> a->pkey_index & 1 && !a->alt_ah.dlid &&
		has_gids(l->ah, &a->ah));
}

/* Would the target take packets of this initiator? */
static bool is_open(const struct target_ref *l, const struct qp *qp)
{
	return qp->state >= HCA_QP_RTR && qp->state <= HCA_QP_SQE &&
	       !qp_target(qp)->has_failed && qp->type == l->type &&
	       (l->type == HCA_QPT_UD || is_ours(l, qp));
}

/* Reads the answer to the request that ask_target left to the target's process;
 * DIRECT_ASKED_TARGET: there is no answer yet.  The load of `ask` comes before
 * that of ask_found, and serve_ask (direct/initiator.c) stores `ask` after
 * ask_found.  Without these orders ask_found could be read before it has the
 * answer. */
static enum direct_result fetch_answer(struct target_ref *l, struct qp *qp,
				       struct direct_request *r)
{
	uint32_t state = atomic_load(&qp_target(qp)->ask);

	if (state == TARGET_ASK_POSTED)
		return DIRECT_ASKED_TARGET;
	l->is_asked = false;
	r->outcome.found = qp_target(qp)->ask_found;
	r->outcome.verdict = (uint32_t)r->outcome.found;
	return state == TARGET_ASK_ANSWERED ? DIRECT_DONE : DIRECT_REFUSED;
}

static enum direct_result note_busy(struct target_ref *l, uint64_t now_ns)
{
	if (!l->is_busy && !l->is_asked)
		l->asked_ns = now_ns;
	l->is_busy = true;
	return DIRECT_BUSY;
}

/* Counts n requests or pieces.  rx_wraps lies in another cache line than the
 * members that each request writes. */
static void count_pieces(struct qp_target *t, uint32_t n)
{
	t->rx_packets += n;
	if (t->rx_packets < n)
		t->rx_wraps++;
}

static enum direct_result execute_request(struct target_ref *l, struct qp *qp,
					  struct direct_request *r)
{
	struct explain x = {.opcode = request_opcode(r)};
	enum verdict v;

	if (!qp_target(qp)->is_heard) {
		qp_target(qp)->is_heard = 1;
		STEP("the first request is heard");
		inside_post(l, qp, r, QP_NOTIFY_HEARD);
	}
	v = request_run(l, qp, r, &x);
	if (r->outcome.is_revoked && r->outcome.is_executed)
		return DIRECT_DONE;
	if (r->outcome.is_revoked || r->outcome.is_full)
		return note_busy(l, r->now_ns);
	if (v && r->outcome.is_ours)
		return DIRECT_OUR_FAULT;
	if (v && r->outcome.is_gone)
		return DIRECT_GONE;
	if (v && r->outcome.is_denied)
		return DIRECT_DENIED;
	if (v == V_RNR) {
		r->outcome.rnr_timer = qp->attr.min_rnr_timer;
		return DIRECT_RNR;
	}
	r->outcome.verdict = v;
	if (v && l->type != HCA_QPT_RC)
		return DIRECT_REFUSED;
	if (!v)
		inside_count(qp, r->opcode, r->bytes);
	count_pieces(qp_target(qp), 1);
	if (v) {
		request_refuse(l, qp, r, v, &x);
		return verdict_row(v)->silent ? DIRECT_CLOSED : DIRECT_REFUSED;
	}
	return l->is_asked ? DIRECT_ASKED_TARGET : DIRECT_DONE;
}

/* Takes the responder lock, and copies the state.  False: the owner waits for
 * the lock (is_wanted), or another thread keeps the lock for long. */
static bool lock_responder(struct target_ref *l, struct qp *qp)
	TRY_ACQUIRE(true, &qp_target(qp)->lock) NO_LOCK_ANALYSIS
{
	if (shared_load(&qp_target(qp)->is_wanted) || !rq_enter(l->hca, qp))
		return false;
	copy_state(l, qp);
	return true;
}

/* After the access was revoked, the owner may have taken the QP's lock, or
 * freed the QP.  rq_leave would then release a lock that this process does not
 * hold; alock_leave releases the lock only if this process still holds it. */
static void leave_responder(struct qp *qp, const struct direct_request *r)
	RELEASE(&qp_target(qp)->lock) NO_LOCK_ANALYSIS
{
	if (r->outcome.is_revoked)
		alock_leave(&qp_target(qp)->lock);
	else
		rq_leave(qp);
}

static bool takes_receive(const struct direct_request *r)
{
	return hca_wr_is_send(r->opcode) || r->opcode == HCA_WR_SEND_INV ||
	       r->opcode == HCA_WR_RDMA_WRITE_IMM;
}

/* Prefetches the next receive, which is in the cache of the target's core while
 * the target polls it. */
static void expect_request(struct target_ref *l, const struct qp *qp,
			   const struct direct_request *r)
{
	if (takes_receive(r))
		prefetch_read(rq_slot(l->hca, qp), wq_used(&qp->rq, r->total));
}

/* Executes r in the target's arena, under the responder lock. */
static enum direct_result run_request(struct target_ref *l,
				      struct direct_request *r)
{
	enum direct_result answer = DIRECT_LOST;
	struct qp *qp = find_qp(l);

	if (!qp) {
		l->is_asked = false;
		return DIRECT_CLOSED;
	}
	expect_request(l, qp, r);
	if (!lock_responder(l, qp))
		return note_busy(l, r->now_ns);
	l->is_busy = l->waits_for_place = false;
	/* The answer to an atomic that the target's process has executed counts
	 * even if the target has failed since. */
	if (l->is_asked && l->connection == qp->connection &&
	    atomic_load(&qp_target(qp)->ask) != TARGET_ASK_POSTED) {
		answer = fetch_answer(l, qp, r);
	} else if (is_open(l, qp) && !l->is_asked && !l->is_copied &&
		   !r->offset && !is_way_back(l, qp)) {
		answer = DIRECT_ASTRAY;
	} else if (is_open(l, qp)) {
		l->connection = qp->connection;
		answer = l->is_asked ? DIRECT_ASKED_TARGET
				     : execute_request(l, qp, r);
	} else {
		l->is_asked = false;
		if (qp->state == HCA_QP_ERR)
			answer = DIRECT_CLOSED;
	}
	leave_responder(qp, r);
	expect_request(l, qp, r);
	return answer;
}

bool target_has_ended(const struct target_ref *l)
{
	return l->access && !hca_is_alive(l->hca);
}

/*
 * Prepares the space, then checks target_has_ended.  The preparation may take
 * long, so it comes first: the process might execute another program between
 * the check and a copy, and that time should be short.
 */
static bool is_gone(struct target_ref *l)
{
	struct space *s = l->hca->space;

	if (l->access && s->ops->refresh)
		s->ops->refresh(s);
	return target_has_ended(l);
}

static void enter_qp(struct target_ref *l)
{
	if (l->access)
		access_enter(l->access, access_qp(l->qpn));
	STEP("the access slot is set");
}

static void leave_qp(struct target_ref *l)
{
	if (l->access)
		access_leave(l->access);
	STEP("the access slot is cleared");
}

enum direct_result target_run(struct target_ref *l, struct direct_request *r)
{
	enum direct_result answer;

	if (is_gone(l))
		return DIRECT_GONE;
	enter_qp(l);
	answer = run_request(l, r);
	leave_qp(l);
	/* If the target's process has executed another program meanwhile, the
	 * copy may have gone to the wrong memory. */
	if (target_has_ended(l))
		return DIRECT_GONE;
	return answer;
}

void target_announce_packets(struct target_ref *l, struct serial24 psn)
{
	uint64_t from = (uint64_t)l->connection << 32 | TARGET_LEFT | psn.v;
	struct qp *qp;

	if (!l->connection || is_gone(l))
		return;
	enter_qp(l);
	qp = find_qp(l);
	/* Release: orders this process's earlier stores, made under the
	 * responder lock, before the store of packets_from.  The acquire load
	 * in follow_to_packets (engine/rx.c) pairs with it.  Without this order
	 * the owner could handle the first packet with the values that the
	 * arena had before those stores.  The packet is sent after the store of
	 * packets_from, so the owner finds packets_from set when it handles
	 * that packet, and does not drop it. */
	if (qp)
		__atomic_store_n(&qp_target(qp)->packets_from, from,
				 __ATOMIC_RELEASE);
	leave_qp(l);
}

/* May a batch be executed?  It may if a request of this connection was executed
 * before, the target is open and sends by the right path (is_way_back), and no
 * request waits for the target's process. */
static bool is_easy(struct target_ref *l, const struct qp *qp)
{
	return !l->is_asked && qp_target(qp)->is_heard &&
	       l->connection == qp->connection && is_open(l, qp) &&
	       is_way_back(l, qp);
}

static uint32_t run_series(struct target_ref *l, struct direct_batch *s)
{
	struct qp *qp = find_qp(l);
	uint32_t n = 0;

	if (!qp || !lock_responder(l, qp))
		return 0;
	if (is_easy(l, qp)) {
		n = batch_run(l, qp, s);
		if (!s->r.outcome.is_revoked)
			count_pieces(qp_target(qp), n);
	}
	leave_responder(qp, &s->r);
	return n;
}

uint32_t target_run_batch(struct target_ref *l, struct direct_batch *s)
{
	uint32_t n;

	if (is_gone(l))
		return 0;
	enter_qp(l);
	n = run_series(l, s);
	leave_qp(l);
	if (target_has_ended(l))
		return 0;
	if (n)
		l->is_busy = l->waits_for_place = false;
	return n;
}

static bool has_receive(const struct target_ref *l, struct qp *qp)
{
	inside_see_posted(l, qp);
	return rq_has(l->hca, qp);
}

static bool is_ready(struct target_ref *l, bool wants_receive)
{
	struct qp *qp = find_qp(l);
	bool ready;

	if (!qp) /* the next try of the request finds that the QP is gone */
		return l->is_asked || l->is_busy;
	if (!lock_responder(l, qp))
		return false;
	inside_see_collected(l, qp);
	if (l->is_busy)
		ready = !rq_is_full(l->hca, qp) &&
			!(l->waits_for_place && eager_is_any(l->hca, qp));
	else if (l->is_asked)
		ready = !is_open(l, qp) ||
			atomic_load(&qp_target(qp)->ask) != TARGET_ASK_POSTED;
	else
		ready = is_open(l, qp) &&
			(!wants_receive || has_receive(l, qp));
	rq_leave(qp);
	return ready;
}

bool target_is_ready(struct target_ref *l, bool wants_receive)
{
	bool ready;

	if (is_gone(l))
		return true;
	enter_qp(l);
	ready = is_ready(l, wants_receive);
	leave_qp(l);
	return ready;
}

/* The causes of the failures that request_refuse notes, as bits. */
#define REFUSALS                                                               \
	(1u << EXPLAIN_LOCAL_KEY | 1u << EXPLAIN_LOCAL_FAULT |                 \
	 1u << EXPLAIN_LOCAL_LENGTH | 1u << EXPLAIN_LOCAL_ROOM |               \
	 1u << EXPLAIN_REMOTE_KEY | 1u << EXPLAIN_REMOTE_FAULT |               \
	 1u << EXPLAIN_REMOTE_INVALID | 1u << EXPLAIN_INVALIDATE)

static enum explain_cause refusal_of(uint32_t cause)
{
	return cause < 32 && REFUSALS >> cause & 1 ? (enum explain_cause)cause
						   : EXPLAIN_REMOTE_INVALID;
}

enum verdict target_explain(const struct target_failure *there,
			    struct explain *x)
{
	const volatile struct target_failure *words = there;
	const struct target_failure copy = *words, *n = &copy;
	uint32_t verdict =
		verdict_is_refusal(n->verdict) ? n->verdict : V_INVALID;

	*x = (struct explain){
		.cause = refusal_of(n->cause),
		.wr_id = n->wr_id,
		.opcode = n->opcode,
		.key = n->key,
		.va = n->va,
		.bytes = n->bytes,
		.verdict =
			n->mr_verdict <= MR_BAD_QP ? n->mr_verdict : MR_BAD_KEY,
		.need = n->need,
		.region_va = n->region_va,
		.region_bytes = n->region_bytes,
		.detail = request_detail(n->detail),
	};
	return (enum verdict)verdict;
}
