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

static void wait_for(const struct guest *g)
{
	uint32_t epoch = ring_load(&g->epoch);
	struct alock_wait w = {0};

	while (epoch % 2 && ring_load(&g->epoch) == epoch) {
		alock_owner who = alock_holder(&g->process);

		if (!who || alock_wait(&w, who))
			return;
	}
}

void guest_wait(struct hca *own)
{
	struct guest *g = slots(own);

	ring_fence();
	for (int i = 0; g && i < GUEST_MAX; i++) {
		if (!alock_holder(&g[i].process) && !ring_load(&g[i].epoch))
			return;
		wait_for(&g[i]);
	}
}
