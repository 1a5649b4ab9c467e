/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/guest.h"

static struct guest *slots(const struct hca *h)
{
	aoff at = h->shared->guests;

	if (at % sizeof(struct guest) ||
	    !arena_has(&h->arena, at, GUEST_MAX * sizeof(struct guest)))
		return NULL;
	return arena_at(&h->arena, at);
}

/* Whoever had it is not inside any more. */
static struct guest *settle(struct guest *g)
{
	uint32_t epoch = ring_own(&g->epoch);

	ring_store(&g->epoch, (epoch | 1) + 1 ? (epoch | 1) + 1 : 2);
	return g;
}

struct guest *guest_take(struct hca *far) NO_LOCK_ANALYSIS
{
	struct guest *g = slots(far);
	bool inherited;

	for (int i = 0; g && i < GUEST_MAX; i++)
		if (!alock_holder(&g[i].process) &&
		    alock_try(&g[i].process, &inherited))
			return settle(&g[i]);
	/* none is free: then those of the dead */
	for (int i = 0; g && i < GUEST_MAX; i++)
		if (alock_try(&g[i].process, &inherited))
			return settle(&g[i]);
	return NULL;
}

void guest_give(struct guest *g) NO_LOCK_ANALYSIS
{
	alock_give(&g->process);
}

static bool may_touch(guest_set touches, guest_set what)
{
	uint32_t qpn = (uint32_t)(touches >> 32) & 0xffffff;
	uint32_t its = (uint32_t)(what >> 32) & 0xffffff;

	return !(touches & GUEST_SAY) || !(what & GUEST_SAY) ||
	       (qpn && qpn == its) || (uint32_t)touches & (uint32_t)what;
}

/* Who is inside as it was at the first look; NULL: nobody. */
static struct guest *who_is_inside(struct hca *own, struct guest_look *l)
{
	struct guest *g = slots(own);

	for (; g && l->at < GUEST_MAX; l->at++, l->epoch = 0) {
		struct guest *s = &g[l->at];
		uint32_t epoch = ring_load(&s->epoch);
		alock_owner who = alock_holder(&s->process);

		if (!who && !epoch)
			break;
		if (!l->epoch)
			l->epoch = epoch;
		if (who && epoch % 2 && epoch == l->epoch &&
		    may_touch(atomic_load_explicit(&s->touches,
						   memory_order_acquire),
			      l->what))
			return s;
	}
	l->at = GUEST_MAX;
	return NULL;
}

static void pass(struct guest_look *l)
{
	l->at++;
	l->epoch = 0;
}

void guest_begin(struct guest_look *l, guest_set what)
{
	*l = (struct guest_look){.what = what};
	ring_fence();
}

bool guest_left(struct hca *own, struct guest_look *l)
{
	const struct guest *g;

	while ((g = who_is_inside(own, l))) {
		if (!alock_is_dead(alock_holder(&g->process)))
			return false;
		pass(l);
	}
	return true;
}

void guest_wait(struct hca *own, guest_set what)
{
	struct alock_wait w = {0};
	const struct guest *g;
	struct guest_look l;
	uint32_t at = 0;

	guest_begin(&l, what);
	while ((g = who_is_inside(own, &l))) {
		if (l.at != at)
			w = (struct alock_wait){0};
		at = l.at;
		if (alock_wait(&w, alock_holder(&g->process)))
			pass(&l);
	}
}
