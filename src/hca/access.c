/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/access.h"

static struct access *access_slots(const struct hca *h)
{
	aoff at = h->shared->accesses;

	if (at % sizeof(struct access) ||
	    !arena_shares(&h->arena, at, ACCESS_MAX * sizeof(struct access)))
		return NULL;
	return arena_at(&h->arena, at);
}

/* Whoever had it is not inside any more. */
static struct access *settle_slot(struct access *g)
{
	uint32_t epoch = shared_own(&g->epoch);

	/* and if it died amid a copy, that was not ours */
	access_copy_by(g, ACCESS_BY_CALLS);
	shared_store(&g->epoch, (epoch | 1) + 1 ? (epoch | 1) + 1 : 2);
	return g;
}

struct access *access_claim(struct hca *peer_area) NO_LOCK_ANALYSIS
{
	struct access *g = access_slots(peer_area);
	bool inherited;

	for (int i = 0; g && i < ACCESS_MAX; i++)
		if (!alock_holder(&g[i].process) &&
		    alock_try(&g[i].process, &inherited))
			return settle_slot(&g[i]);
	/* none is free: then those of the dead */
	for (int i = 0; g && i < ACCESS_MAX; i++)
		if (alock_try(&g[i].process, &inherited))
			return settle_slot(&g[i]);
	return NULL;
}

void access_release(struct access *g) NO_LOCK_ANALYSIS
{
	alock_give(&g->process);
}

void access_copy(struct access *g, access_set what)
{
	shared_store(&g->thread, alock_thread());
	/* and then, not before, it looks at the keys */
	atomic_exchange(&g->touches, what | ACCESS_COPIES);
	shared_fence_after_exchange();
}

bool access_copied(struct access *g, access_set what, access_set then)
{
	what |= ACCESS_COPIES;
	return atomic_compare_exchange_strong(&g->touches, &what, then);
}

/* Will it look before it copies on? */
static bool is_halted(struct access *g)
{
	switch (alock_halt_of(shared_load(&g->thread))) {
	case ALOCK_RUNS:
		break;
	case ALOCK_STOPPED:
		return shared_load(&g->by) == ACCESS_BY_RSEQ;
	case ALOCK_STOPPED_AFTER_COPY:
		return true;
	}
	return false;
}

/*
 * Stopped outside of its system calls it may be about to begin one.  So it is
 * looked at again after its access was revoked: whatever it does next, it first
 * finds that it is.
 */
static bool revoke_slot(struct access *g)
{
	access_set touches = atomic_load(&g->touches);

	if (!(touches & ACCESS_COPIES) && touches != ACCESS_REVOKED)
		return false;
	if (!is_halted(g))
		return false;
	if (touches & ACCESS_COPIES)
		atomic_compare_exchange_strong(&g->touches, &touches,
					       ACCESS_REVOKED);
	return is_halted(g) && access_is_revoked(g);
}

bool access_revoke(struct hca *own, alock_owner who)
{
	struct access *g = access_slots(own);

	for (int i = 0; g && i < ACCESS_MAX; i++) {
		alock_owner is = alock_holder(&g[i].process);

		if (!is && !shared_load(&g[i].epoch))
			break;
		if (is && is == who && shared_load(&g[i].epoch) % 2)
			return revoke_slot(&g[i]);
	}
	return false;
}

static bool may_touch(access_set touches, access_set what)
{
	uint32_t qpn = (uint32_t)(touches >> 32) & 0xffffff;
	uint32_t its = (uint32_t)(what >> 32) & 0xffffff;

	if (touches == ACCESS_REVOKED || !(what & ACCESS_SAY))
		return true;
	if ((uint32_t)what && !its && !(touches & ACCESS_COPIES))
		return false; /* it will find them withdrawn */
	return !(touches & ACCESS_SAY) || (qpn && qpn == its) ||
	       (uint32_t)touches & (uint32_t)what;
}

/* A slot whose peer is inside since the first look; NULL: there is none. */
static struct access *who_is_inside(struct hca *own, struct access_scan *l)
{
	struct access *g = access_slots(own);

	for (; g && l->at < ACCESS_MAX; l->at++, l->epoch = 0) {
		struct access *s = &g[l->at];
		uint32_t epoch = shared_load(&s->epoch);
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
	l->at = ACCESS_MAX;
	return NULL;
}

static void pass_slot(struct access_scan *l)
{
	l->at++;
	l->epoch = 0;
}

/* No thread of ours has a slot here, and none is nameless where we have a name:
 * a peer that says so writes nonsense, and is not waited for. */
static bool is_nobody(alock_owner who)
{
	alock_owner self = alock_self();

	return self != ALOCK_NAMELESS && (who == self || who == ALOCK_NAMELESS);
}

void access_scan_begin(struct access_scan *l, access_set what)
{
	*l = (struct access_scan){.what = what};
	shared_fence();
}

bool access_scan_done(struct hca *own, struct access_scan *l)
{
	struct access *g;

	while ((g = who_is_inside(own, l))) {
		alock_owner who = alock_holder(&g->process);

		if (!is_nobody(who) && !alock_is_dead(who) && !revoke_slot(g))
			return false;
		pass_slot(l);
	}
	return true;
}

void access_wait(struct hca *own, access_set what)
{
	struct alock_wait w = {0};
	struct access_scan l;
	struct access *g;
	uint32_t at = 0;

	access_scan_begin(&l, what);
	while ((g = who_is_inside(own, &l))) {
		if (l.at != at)
			w = (struct alock_wait){0};
		at = l.at;
		if (is_nobody(alock_holder(&g->process)) ||
		    alock_wait(&w, alock_holder(&g->process)) ||
		    (w.is_late && revoke_slot(g)))
			pass_slot(&l);
	}
}
