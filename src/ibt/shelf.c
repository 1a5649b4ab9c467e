/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/shelf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ibt/uc.h"
#include "util/bits.h"

/* A packet that waits. */
struct shelf {
	struct list node;
	struct ud_from from;
	uint32_t len;
	uint8_t bytes[IBT_PACKET_BYTES];
};

int shelf_open(struct ibt *t)
{
	if (t->shelf)
		return 0;
	t->shelf = calloc(SHELF_PACKETS, sizeof *t->shelf);
	if (!t->shelf)
		return -ENOMEM;
	list_init(&t->shelf_free);
	for (int i = 0; i < SHELF_PACKETS; i++)
		list_push_tail(&t->shelf_free, &t->shelf[i].node);
	return 0;
}

void shelf_close(struct ibt *t)
{
	free(t->shelf);
}

bool shelf_is_full(const struct ibt *t)
{
	return t->shelf_count >= SHELF_FULL;
}

static void deliver(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
		    const struct ud_from *f)
{
	if (q->qp->type == HCA_QPT_UD)
		ud_resp_rx(t, q, p, f);
	else
		uc_resp_rx(t, q, p);
}

/* Would p be dropped for want of a receive? */
static bool lacks_receive(struct ibt *t, const struct ibt_qp *q,
			  const struct pkt *p)
{
	bool wants = p->info->kind == OPCODE_KIND_SEND
			     ? opcode_starts(p->info)
			     : (p->info->ext & OPCODE_EXT_IMMDT) != 0;

	if (q->qp->type == HCA_QPT_UD && p->deth.qkey != q->qp->attr.qkey)
		return false;
	return wants && q->qp->state >= HCA_QP_RTR &&
	       q->qp->state <= HCA_QP_SQE && !rq_has(t->hca, q->qp);
}

/* Out of patience everything is delivered, and dropped as it goes. */
static void empty(struct ibt *t, struct ibt_qp *q, bool in_time)
{
	while (!list_is_empty(&q->shelf)) {
		struct shelf *s =
			CONTAINER_OF(q->shelf.next, struct shelf, node);
		struct pkt p;

		if (pkt_parse(s->bytes, s->len, &p)) {
			if (in_time && lacks_receive(t, q, &p))
				return;
			deliver(t, q, &p, &s->from);
		}
		/* a failure may have cleared the shelf */
		if (list_is_empty(&q->shelf))
			return;
		list_remove(&s->node);
		list_push_head(&t->shelf_free, &s->node);
		t->shelf_count--;
	}
}

void shelf_serve(struct ibt *t, struct ibt_qp *q)
{
	uint64_t until_ns = q->shelf_until_ns;
	bool in_time;

	if (t->polled_ns < until_ns)
		until_ns += SHELF_UNSEEN_NS;
	in_time = t->now_ns < until_ns;
	if (list_is_empty(&q->shelf))
		return;
	empty(t, q, in_time);
	q->shelf_is_late = !in_time;
	if (list_is_empty(&q->shelf))
		wheel_cancel(&t->wheel, &q->rnr_timer);
	else
		wheel_set(&t->wheel, &q->rnr_timer, t->now_ns + SHELF_LOOK_NS);
}

void shelf_asleep(struct ibt_qp *q, uint64_t slept_ns)
{
	q->shelf_until_ns += slept_ns;
}

void shelf_reset(struct ibt *t, struct ibt_qp *q)
{
	for (struct list *n; (n = list_pop_head(&q->shelf));) {
		list_push_head(&t->shelf_free, n);
		t->shelf_count--;
	}
	q->shelf_is_late = false;
}

void shelf_rx(struct ibt *t, struct ibt_qp *q, const struct pkt *p,
	      const struct ud_from *f, const uint8_t *bytes, size_t len)
{
	bool is_first = list_is_empty(&q->shelf);
	struct shelf *s;

	if (is_first && !lacks_receive(t, q, p)) {
		q->shelf_is_late = false;
		deliver(t, q, p, f);
		return;
	}
	if (q->shelf_is_late || t->strict || len > IBT_PACKET_BYTES ||
	    list_is_empty(&t->shelf_free)) {
		/* behind others it has to be lost too */
		if (is_first)
			deliver(t, q, p, f);
		return;
	}
	s = CONTAINER_OF(list_pop_head(&t->shelf_free), struct shelf, node);
	s->from = *f;
	s->len = (uint32_t)len;
	memcpy(s->bytes, bytes, len);
	list_push_tail(&q->shelf, &s->node);
	t->shelf_count++;
	if (!is_first)
		return;
	q->shelf_until_ns = t->now_ns + SHELF_PATIENCE_NS;
	wheel_set(&t->wheel, &q->rnr_timer, t->now_ns + SHELF_LOOK_NS);
}
