/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/later.h"

#include "ibt/ibt.h"
#include "util/bits.h"

static struct later *find(struct ibt *t, aoff cq)
{
	for (int i = 0; i < IBT_LATER; i++)
		if (t->later[i].cq == cq)
			return &t->later[i];
	return NULL;
}

static void fire(struct ibt *t, struct cq *cq)
{
	cq_fire(cq);
	ibt_cq_tell(t, cq);
}

void later_set(struct ibt *t, struct cq *cq)
{
	aoff off = hca_off(t->hca, cq);
	struct later *l = find(t, off);

	if (!l) {
		l = find(t, 0);
		if (!l) {
			fire(t, cq);
			return;
		}
		l->cq = off;
		wheel_timer_init(&l->timer);
		l->timer.kind = IBT_TIMER_LATER;
	}
	wheel_set(&t->wheel, &l->timer, t->now_ns + cq->hold_ns);
}

void later_expire(struct ibt *t, struct wheel_timer *timer)
{
	struct later *l = CONTAINER_OF(timer, struct later, timer);
	struct cq *cq = arena_at(&t->hca->arena, l->cq);

	l->cq = 0;
	fire(t, cq);
}

void later_forget(struct ibt *t, const struct cq *cq)
{
	struct later *l = find(t, hca_off(t->hca, cq));

	if (!l)
		return;
	wheel_cancel(&t->wheel, &l->timer);
	l->cq = 0;
}
