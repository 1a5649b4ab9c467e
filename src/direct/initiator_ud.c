/* SPDX-License-Identifier: BSD-2-Clause */
#include "direct/initiator_ud.h"

#include <stdlib.h>
#include <string.h>

#include "direct/initiator.h"
#include "hca/semantics.h"
#include "hdr/bth.h"
#include "ibt/mcast.h"
#include "ibt/ud.h"
#include "ibt/unreliable_tx.h"
#include "util/bits.h"
#include "util/map.h"

#define TARGETS_MAX 1024 /* the most links; other targets get packets */
#define LOOKS	    2	 /* links to look at for each new link */

static struct target_ref *find_target(const struct ibt_qp *q, uint32_t qpn)
{
	return q->direct.targets ? map_find(q->direct.targets, qpn) : NULL;
}

static void drop_target(struct ibt *t, struct ibt_qp *q, struct target_ref *l)
{
	map_remove(q->direct.targets, l->qpn);
	if (q->direct.link == l)
		q->direct.link = NULL;
	initiator_release(t, l);
}

/* Should l, a link of q, be given up?  q may wait for q->direct.link.  A link
 * without an owner tells that packets go to its target.  That link stays:
 * without it each datagram to the target would ask the broker about the target.
 */
static bool is_useless(const struct ibt_qp *q, const struct target_ref *l)
{
	return l != q->direct.link && l->owner && target_has_ended(l);
}

/* Looks at the next links of q, and gives up those that are useless: a program
 * may never again send to a target that has ended, and each such link keeps a
 * descriptor and a mapping.  Two looks for each new link find these links
 * faster than new links are added. */
static void drop_useless(struct ibt *t, struct ibt_qp *q)
{
	uint32_t *at = &q->direct.looked_at;

	for (uint32_t i = 0; i < LOOKS; i++) {
		struct target_ref *l = map_next(q->direct.targets, at);

		if (!l) {
			*at = 0;
		} else if (is_useless(q, l)) {
			drop_target(t, q, l);
			/* map_remove may have moved another link to the slot */
			--*at;
		}
	}
}

static struct target_ref *add_target(struct ibt *t, struct ibt_qp *q,
				     uint32_t qpn)
{
	struct target_ref *l;

	if (!q->direct.targets)
		q->direct.targets = calloc(1, sizeof(*q->direct.targets));
	if (!q->direct.targets)
		return NULL;
	drop_useless(t, q);
	if (q->direct.targets->count == TARGETS_MAX)
		return NULL;
	l = target_new();
	if (!l || map_add(q->direct.targets, qpn, l)) {
		free(l);
		return NULL;
	}
	l->type = HCA_QPT_UD;
	l->has_no_eager = t->direct.has_no_eager;
	l->path = IBT_PATH_UNDECIDED;
	l->qpn = qpn;
	l->src_qpn = q->qp->qpn;
	return l;
}

bool initiator_ud_attach(struct ibt_qp *q, struct hca *target,
			 struct access *access, void *owner)
{
	struct target_ref *l = find_target(q, q->direct.packets_to);

	if (!l)
		return false;
	l->hca = target;
	l->qp.self = 0;
	l->access = access;
	l->owner = target ? owner : NULL;
	l->path = target ? IBT_PATH_DIRECT : IBT_PATH_PACKETS;
	return target;
}

void initiator_ud_fini(struct ibt *t, struct ibt_qp *q)
{
	struct target_ref *l;
	uint32_t at = 0;

	while (q->direct.targets && (l = map_next(q->direct.targets, &at)))
		initiator_release(t, l);
	q->direct.link = NULL;
	if (q->direct.targets)
		map_fini(q->direct.targets);
	free(q->direct.targets);
	q->direct.targets = NULL;
}

/* Returns the path of the datagram at the cursor, and notes its destination QPN
 * and its link in q->direct. */
static enum ibt_path path_of(struct ibt *t, struct ibt_qp *q,
			     const struct wq_to *to)
{
	struct target_ref *l;

	q->direct.packets_to = to->qpn;
	if (!to->local || to->qpn == MCAST_QPN)
		return IBT_PATH_PACKETS;
	l = find_target(q, to->qpn);
	if (!l)
		l = add_target(t, q, to->qpn);
	if (!l)
		return IBT_PATH_PACKETS;
	q->direct.link = l;
	return (enum ibt_path)l->path;
}

/* Returns the addresses and the length that the datagram would have on a
 * wire. */
static struct ud_from from_of(const struct wq_to *to, const struct wqe *w)
{
	struct ud_from from = {.tos = to->tos};
	size_t imm = w->opcode == HCA_WR_SEND_IMM ? 4 : 0;

	memcpy(from.from.ip, to->from, 16);
	memcpy(from.to.ip, to->to, 16);
	from.bytes = BTH_BYTES + 8 + imm + bits_align_up(w->bytes, 4) + 4;
	return from;
}

static void describe_datagram(const struct ibt_qp *q, struct wqe *w,
			      const struct wq_to *to, uint8_t *bytes,
			      struct direct_request *r)
{
	struct ud_from from = from_of(to, w);

	ud_resp_grh(bytes, &from);
	r->opcode = w->opcode;
	r->solicited = w->flags & HCA_SEND_SOLICITED;
	r->total = r->bytes = UD_GRH_BYTES + w->bytes;
	r->offset = 0;
	r->imm_be = w->imm_be;
	r->qkey = ud_req_qkey(q, to);
	r->sl = ud_resp_sl(&from);
	r->data = bytes;
	r->initiator.n = 0;
	direct_request_clear(r);
}

/* Has the datagram at the cursor waited for its target? */
static bool has_waited(const struct ibt_qp *q)
{
	return q->direct.busy.since_ns && q->direct.busy.wqe == q->req.wqe;
}

bool initiator_ud_is_late(const struct ibt *t, const struct ibt_qp *q)
{
	return has_waited(q) &&
	       t->now_ns - q->direct.busy.since_ns >= ibt_qp_patience_ns(t, q);
}

void initiator_ud_asleep(struct ibt_qp *q, uint64_t slept_ns, uint64_t now_ns)
{
	if (has_waited(q))
		q->direct.busy.since_ns = bits_min_u64(
			now_ns, q->direct.busy.since_ns + slept_ns);
}

static void begin_wait(struct ibt *t, struct ibt_qp *q)
{
	if (!has_waited(q)) {
		q->direct.busy.wqe = q->req.wqe;
		q->direct.busy.since_ns = t->now_ns;
	}
	initiator_wait(t, q);
}

/* The datagram at the cursor and all later ones to its target go by packets. */
static void use_packets(struct ibt_qp *q)
{
	q->direct.link->path = q->direct.path = IBT_PATH_PACKETS;
}

static void judge_result(struct ibt *t, struct ibt_qp *q, const struct wqe *w,
			 enum direct_result answer)
{
	switch (answer) {
	case DIRECT_DONE:
		q->qp->stats.tx_bytes += w->bytes;
		q->qp->stats.tx_packets++;
		unreliable_tx_advance(t, q);
		break;
	case DIRECT_BUSY:
	case DIRECT_ASKED_TARGET:
		if (initiator_ud_is_late(t, q))
			use_packets(q);
		else
			begin_wait(t, q);
		break;
	case DIRECT_GONE:
		/* The host cannot unmap the target's arena before the link is
		 * released (initiator_released). */
		drop_target(t, q, q->direct.link);
		q->direct.path = IBT_PATH_PACKETS;
		break;
	case DIRECT_LOST:
	case DIRECT_CLOSED:
	case DIRECT_ASTRAY:
	case DIRECT_RNR:
	case DIRECT_REFUSED:
	case DIRECT_DENIED:
	case DIRECT_OUR_FAULT:
		use_packets(q);
		break;
	}
}

uint32_t initiator_ud_turn(struct ibt *t, struct ibt_qp *q,
			   struct list *to_wake, uint64_t now_ns)
{
	uint8_t bytes[UD_GRH_BYTES + IBT_MAX_MTU];
	struct wqe *w = unreliable_tx_next(t, q);
	const struct wq_to *to;
	struct explain x = {0};
	struct direct_request r;
	enum direct_result answer;
	enum hca_status status;

	/* NULL: no request may be sent now.  A request that is posted from here
	 * on waits for the next turn. */
	if (!w)
		return 0;
	to = wq_to(&q->qp->sq, w);
	q->direct.path = path_of(t, q, to);
	if (q->direct.path != IBT_PATH_DIRECT)
		return 0;
	/* q may still be on the list of waiting QPs, for the target of another
	 * datagram. */
	list_remove(&q->direct.waiting);
	if (!ud_req_start(t, q, w))
		return 0;
	status = sem_gather(t->hca, q->qp->pd, w, 0, w->bytes,
			    bytes + UD_GRH_BYTES, NULL, &x);
	if (status) {
		unreliable_tx_stop(t, q, w, status, &x);
		return 0;
	}
	describe_datagram(q, w, to, bytes, &r);
	r.now_ns = now_ns;
	answer = target_run(q->direct.link, &r);
	initiator_wake(q, to_wake, &r);
	judge_result(t, q, w, answer);
	return answer == DIRECT_DONE ? r.bytes : 0;
}
