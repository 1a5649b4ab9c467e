/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/rx_pending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibt/mcast.h"
#include "ibt/uc.h"
#include "util/bits.h"

/* A packet that waits. */
struct rx_pending {
	struct list node;    /* on rx_pending_state.packets or the free list */
	struct ud_from from; /* UD only */
	uint32_t src_qpn;    /* see sender_of */
	uint32_t len;	     /* bytes of the packet */
	/* When the packet is dropped if it still lacks a receive; rx_pending.h
	 * says which packets wait longer. */
	uint64_t until_ns;
	uint8_t bytes[IBT_PACKET_BYTES]; /* BTH to padding */
};

int rx_pending_open(struct ibt *t)
{
	if (t->rx_pending.packets)
		return 0;
	t->rx_pending.packets =
		malloc(RX_PENDING_PACKETS * sizeof(*t->rx_pending.packets));
	if (!t->rx_pending.packets)
		return -ENOMEM;
	list_init(&t->rx_pending.free);
	return 0;
}

void rx_pending_close(struct ibt *t)
{
	free(t->rx_pending.packets);
}

bool rx_pending_is_full(const struct ibt *t)
{
	return t->rx_pending.count >= RX_PENDING_FULL &&
	       t->rx_pending.qps == t->qps;
}

/* Returns the QPN of p's sender; 0 stands for the QPN of the peer with which q
 * is connected. */
static uint32_t sender_of(const struct ibt_qp *q, const struct pkt *p)
{
	return q->qp->type == HCA_QPT_UD ? p->deth.src_qpn : 0;
}

/* Does p take a receive from its QP? */
static bool takes_receive(const struct ibt_qp *q, const struct pkt *p)
{
	bool takes = p->info->kind == OPCODE_KIND_SEND
			     ? opcode_starts(p->info)
			     : (p->info->ext & OPCODE_EXT_IMMDT) != 0;

	return takes && q->qp->state >= HCA_QP_RTR &&
	       q->qp->state <= HCA_QP_SQE;
}

/*
 * Delivers p.  Peers of this host take receives too, so p is judged and
 * delivered under the responder lock.  False: p was neither delivered nor
 * dropped, because a peer holds the lock (is_locked) or no receive is posted.
 * @is_patient: p may wait for a receive, unless p is for a multicast group.  If
 * p lacks a receive and may not wait, this function passes p to p's service,
 * which drops p.
 */
static bool deliver_packet(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
			   const struct ud_from *f, bool is_patient)
{
	bool takes = takes_receive(q, p), lacks;

	if (!ibt_responder_enter(t, q)) {
		q->pending.is_locked = true;
		return false;
	}
	q->pending.is_locked = q->pending.is_lock_late = false;
	lacks = takes && !rq_has(t->hca, q->qp);
	/* The rest of a message that was dropped for want of a receive needs
	 * none, and so does not tell that the program posts receives again. */
	if (takes && !lacks)
		q->pending.is_late = false;
	if (lacks && is_patient && p->bth.dest_qpn != MCAST_QPN) {
		ibt_responder_leave(q);
		return false;
	}
	if (q->qp->type == HCA_QPT_UD)
		ud_resp_rx(t, q, p, f);
	else
		uc_resp_rx(t, q, p);
	ibt_responder_leave(q);
	return true;
}

/* Counts and reports a message of src_qpn (sender_of) that is dropped because
 * it has waited for too long, or cannot wait. */
static void lose_message(struct ibt *t, struct ibt_qp *q, uint32_t src_qpn)
{
	struct explain x = {0};

	ibt_dropped(t, q, &x,
		    q->pending.is_locked ? IBT_DROP_BUSY : IBT_DROP_RECEIVE,
		    src_qpn);
}

static void free_packet(struct ibt *t, struct ibt_qp *q, struct rx_pending *s)
{
	list_remove(&s->node);
	list_push_head(&t->rx_pending.free, &s->node);
	t->rx_pending.count--;
	if (!--q->pending.count)
		t->rx_pending.qps--;
}

static struct rx_pending *first_pending(const struct ibt_qp *q)
{
	return list_is_empty(&q->pending.packets)
		       ? NULL
		       : CONTAINER_OF(q->pending.packets.next,
				      struct rx_pending, node);
}

/* May the packet wait longer for a receive? */
static bool is_in_time(const struct ibt *t, const struct rx_pending *s)
{
	uint64_t until_ns = s->until_ns;

	if (t->polled_ns < until_ns)
		until_ns += RX_PENDING_UNSEEN_NS;
	return t->now_ns < until_ns;
}

/* Delivers q's packets up to the first that has to wait.  A packet that lacks a
 * receive and may not wait longer is passed to its service, which drops it. */
static void deliver_pending(struct ibt *t, struct ibt_qp *q)
{
	struct rx_pending *s;

	while ((s = first_pending(q))) {
		bool is_patient;
		struct pkt p;

		q->pending.is_late |= !is_in_time(t, s);
		is_patient = !q->pending.is_late && !t->strict;
		if (pkt_parse(s->bytes, s->len, &p) &&
		    !deliver_packet(t, q, &p, &s->from, is_patient))
			return;
		/* if q has failed, all its packets are dropped already */
		if (list_is_empty(&q->pending.packets))
			return;
		free_packet(t, q, s);
	}
}

/* Drops q's packets, because a peer holds the responder lock for long and the
 * caller has to receive packets for other queue pairs. */
static void drop_pending(struct ibt *t, struct ibt_qp *q)
{
	struct rx_pending *s;

	q->pending.is_lock_late = true;
	while ((s = first_pending(q))) {
		lose_message(t, q, s->src_qpn);
		free_packet(t, q, s);
	}
}

void rx_pending_serve(struct ibt *t, struct ibt_qp *q)
{
	const struct rx_pending *s;

	if (list_is_empty(&q->pending.packets))
		return;
	deliver_pending(t, q);
	s = first_pending(q);
	if (s && t->now_ns >= s->until_ns + RX_PENDING_BUSY_NS)
		drop_pending(t, q);
	if (list_is_empty(&q->pending.packets))
		wheel_cancel(&t->wheel, &q->timers.rnr);
	else
		wheel_set(&t->wheel, &q->timers.rnr,
			  t->now_ns + RX_PENDING_LOOK_NS);
}

void rx_pending_asleep(struct ibt_qp *q, uint64_t slept_ns)
{
	list_for_each (l, &q->pending.packets)
		CONTAINER_OF(l, struct rx_pending, node)->until_ns += slept_ns;
}

void rx_pending_reset(struct ibt *t, struct ibt_qp *q)
{
	struct rx_pending *s;

	while ((s = first_pending(q)))
		free_packet(t, q, s);
	q->pending.is_late = q->pending.is_lock_late = false;
}

static bool is_below_share(const struct ibt *t, const struct ibt_qp *q)
{
	return t->qps == 1 || q->pending.count < RX_PENDING_OWN;
}

/* Returns memory for a packet.  Called only while fewer than RX_PENDING_PACKETS
 * packets wait. */
static struct rx_pending *take_row(struct rx_pending_pool *p)
{
	return list_is_empty(&p->free) ? &p->packets[p->used++]
				       : CONTAINER_OF(list_pop_head(&p->free),
						      struct rx_pending, node);
}

static void keep_packet(struct ibt *t, struct ibt_qp *q,
			const struct ud_from *f, uint32_t src_qpn,
			const uint8_t *bytes, size_t len)
{
	struct rx_pending *s = take_row(&t->rx_pending);

	s->from = *f;
	s->src_qpn = src_qpn;
	s->len = (uint32_t)len;
	s->until_ns = t->now_ns + RX_PENDING_PATIENCE_NS;
	memcpy(s->bytes, bytes, len);
	list_push_tail(&q->pending.packets, &s->node);
	t->rx_pending.count++;
	if (!q->pending.count++)
		t->rx_pending.qps++;
}

void rx_pending_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		   const struct ud_from *f, const uint8_t *bytes, size_t len)
{
	bool has_room = len <= IBT_PACKET_BYTES && is_below_share(t, q) &&
			t->rx_pending.count < RX_PENDING_PACKETS;
	bool is_first = list_is_empty(&q->pending.packets);
	bool is_patient = has_room && !q->pending.is_late && !t->strict;

	/* Packets with a wrong Q_Key are dropped at once: their sender must not
	 * use up the room for waiting packets. */
	if (q->qp->type == HCA_QPT_UD && p->deth.qkey != q->qp->attr.qkey) {
		ud_resp_rx(t, q, p, f);
		return;
	}
	if (is_first && deliver_packet(t, q, p, f, is_patient))
		return;
	if (!has_room || q->pending.is_lock_late) {
		lose_message(t, q, sender_of(q, p));
		return;
	}
	keep_packet(t, q, f, sender_of(q, p), bytes, len);
	if (is_first)
		wheel_set(&t->wheel, &q->timers.rnr,
			  t->now_ns + RX_PENDING_LOOK_NS);
}
