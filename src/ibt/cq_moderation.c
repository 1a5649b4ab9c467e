/* SPDX-License-Identifier: BSD-2-Clause */
#include "ibt/cq_moderation.h"

#include "ibt/ibt.h"
#include "util/bits.h"

static struct cq_moderation *find_timer(struct ibt *t, aoff cq)
{
	for (int i = 0; i < IBT_CQ_MODERATION; i++)
		if (t->cq_moderation[i].cq == cq)
			return &t->cq_moderation[i];
	return NULL;
}

static void fire_event(struct ibt *t, struct cq *cq)
{
	cq_fire(cq);
	ibt_cq_tell(t, cq);
}

void cq_moderation_set(struct ibt *t, struct cq *cq)
{
	aoff off = hca_off(t->hca, cq);
	struct cq_moderation *m = find_timer(t, off);

	if (!m) {
		m = find_timer(t, 0);
		if (!m) {
			fire_event(t, cq);
			return;
		}
		m->cq = off;
		wheel_timer_init(&m->timer);
		m->timer.kind = IBT_TIMER_CQ_MODERATION;
	}
	wheel_set(&t->wheel, &m->timer, t->now_ns + cq->hold_ns);
}

void cq_moderation_expire(struct ibt *t, struct wheel_timer *timer)
{
	struct cq_moderation *m =
		CONTAINER_OF(timer, struct cq_moderation, timer);
	struct cq *cq = arena_at(&t->hca->arena, m->cq);

	m->cq = 0;
	fire_event(t, cq);
}

void cq_moderation_forget(struct ibt *t, const struct cq *cq)
{
	struct cq_moderation *m = find_timer(t, hca_off(t->hca, cq));

	if (!m)
		return;
	wheel_cancel(&t->wheel, &m->timer);
	m->cq = 0;
}
