/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/reorder.h"

#include <string.h>

#include "ibt/ibt.h"
#include "util/bits.h"

void reorder_init(struct reorder *e)
{
	list_init(&e->held);
	e->count = 0;
}

struct ibt_held *reorder_first(const struct reorder *e)
{
	return list_is_empty(&e->held)
		       ? NULL
		       : CONTAINER_OF(e->held.next, struct ibt_held, node);
}

struct ibt_held *reorder_take(struct reorder *e)
{
	struct ibt_held *k =
		CONTAINER_OF(list_pop_head(&e->held), struct ibt_held, node);

	e->count--;
	return k;
}

void reorder_give(struct ibt *t, struct ibt_held *k)
{
	list_push_head(&t->held.free, &k->node);
}

void reorder_drop(struct ibt *t, struct reorder *e)
{
	while (reorder_first(e))
		reorder_give(t, reorder_take(e));
}

/* Is k a copy of the packet at bytes, which has the same PSN?  BTHs and AETHs
 * are not compared beyond the opcode: a request that is sent again may have
 * another AckReq, and a response that is sent again may have a newer AETH. */
static bool is_copy_of(const struct ibt_held *k, const uint8_t *bytes,
		       size_t len)
{
	const struct opcode_info *info = opcode_info(bytes[0]);
	size_t skip = BTH_BYTES;

	if (info->ext & OPCODE_EXT_AETH)
		skip += AETH_BYTES;
	return k->len == len && k->bytes[0] == bytes[0] &&
	       !memcmp(k->bytes + skip, bytes + skip, len - skip);
}

/* Returns memory for a packet; NULL: IBT_POOL packets are held. */
static struct ibt_held *take_row(struct ibt_held_pool *p)
{
	if (!list_is_empty(&p->free))
		return CONTAINER_OF(list_pop_head(&p->free), struct ibt_held,
				    node);
	return p->used < IBT_POOL ? &p->rows[p->used++] : NULL;
}

bool reorder_keep(struct ibt *t, struct ibt_qp *q, struct reorder *e,
		  struct serial24 psn, const uint8_t *bytes, size_t len)
{
	struct list *before = &e->held;
	struct ibt_held *k;

	if (e->count >= IBT_HELD_PER_QP || len > IBT_PACKET_BYTES)
		return false;
	for (struct list *n = e->held.prev; n != &e->held; n = n->prev) {
		k = CONTAINER_OF(n, struct ibt_held, node);
		if (serial24_is_equal(k->psn, psn)) {
			if (is_copy_of(k, bytes, len))
				return true;
			reorder_drop(t, e);
			return false;
		}
		if (serial24_is_before(k->psn, psn))
			break;
		before = n;
	}
	k = take_row(&t->held);
	if (!k)
		return false;
	k->psn = psn;
	k->len = (uint32_t)len;
	memcpy(k->bytes, bytes, len);
	list_push_tail(before, &k->node);
	e->count++;
	q->counters->rx_buffered++;
	return true;
}
