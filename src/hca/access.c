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

/* Prepares a slot that this process has just claimed.  The process that had the
 * slot before may have died inside, so the epoch becomes the next even number,
 * but not 0, which would mark the slot as never claimed. */
static struct access *settle_slot(struct access *g)
{
	uint32_t epoch = shared_own(&g->epoch);

	/* The process before may have left ACCESS_BY_RSEQ here. */
	access_copy_by(g, ACCESS_BY_CALLS);
	shared_store(&g->epoch, (epoch | 1) + 1 ? (epoch | 1) + 1 : 2);
	return g;
}

struct access *access_claim(struct hca *peer) NO_LOCK_ANALYSIS
{
	struct access *g = access_slots(peer);
	bool inherited;

	for (int i = 0; g && i < ACCESS_MAX; i++)
		if (!alock_holder(&g[i].process) &&
		    alock_try(&g[i].process, &inherited))
			return settle_slot(&g[i]);
	/* If no slot is free, takes the slot of a process that has died. */
	for (int i = 0; g && i < ACCESS_MAX; i++)
		if (alock_try(&g[i].process, &inherited))
			return settle_slot(&g[i]);
	return NULL;
}

/* Another process may have inherited the slot, so this function calls
 * alock_leave, not alock_give.  That happens if the thread whose id names this
 * process (memory/lock_owner.h) has ended: the other process then finds this
 * process dead. */
void access_release(struct access *g) NO_LOCK_ANALYSIS
{
	alock_leave(&g->process);
}

void access_copy(struct access *g, access_set what)
{
	shared_store(&g->thread, alock_thread());
	/* Orders the store of `touches` before the caller's lookup of the keys.
	 * Otherwise the owner could find the slot empty after it has withdrawn
	 * a key, although the lookup still finds the key. */
	atomic_exchange(&g->touches, what | ACCESS_COPIES);
	shared_fence_after_exchange();
}

bool access_copied(struct access *g, access_set what, access_set then)
{
	what |= ACCESS_COPIES;
	return atomic_compare_exchange_strong(&g->touches, &what, then);
}

/* Is the copying thread stopped, and will it check for a revocation before it
 * copies more? */
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
 * Revokes the access of the peer in a slot, if its copying thread is halted.
 * The thread may have continued between the check and the revocation, and begun
 * a system call that copies.  So its state is read again after the revocation:
 * a thread that is still halted notices the revocation before it copies more.
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
		/* The peer has yet to look keys up, and will find these
		 * withdrawn. */
		return false;
	return !(touches & ACCESS_SAY) || (qpn && qpn == its) ||
	       (uint32_t)touches & (uint32_t)what;
}

/*
 * Returns the next slot whose peer may touch l->what, and has been inside all
 * the time since the scan first read the slot; NULL: there is none.
 *
 * The acquire load of `touches` pairs with the exchange in access_copied: the
 * peer's copy comes before what the owner does next.  Without this order the
 * owner could see that the peer does not copy any more, and the program could
 * use the memory before the copy is complete.
 */
static struct access *peer_inside(struct hca *own, struct access_scan *l)
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

/* Does the slot name a holder that cannot be a peer?  This process has no slot
 * in its own arena, and no process is nameless on a host where this process has
 * a name.  Such a slot is invalid input, and is not waited for. */
static bool is_nobody(alock_owner who)
{
	alock_owner self = alock_self();

	return self != ALOCK_NAMELESS && (who == self || who == ALOCK_NAMELESS);
}

void access_scan_begin(struct access_scan *l, access_set what)
{
	*l = (struct access_scan){.what = what};
	/* Orders the owner's withdrawal of a QP or key before the loads of the
	 * slots.  A peer stores its slot before it looks up the QP or the key.
	 * Without the fence the peer could still find the key although the
	 * owner has found the slot empty. */
	shared_fence();
}

bool access_scan_done(struct hca *own, struct access_scan *l)
{
	struct access *g;

	while ((g = peer_inside(own, l))) {
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
	while ((g = peer_inside(own, &l))) {
		if (l.at != at)
			w = (struct alock_wait){0};
		at = l.at;
		if (is_nobody(alock_holder(&g->process)) ||
		    alock_wait(&w, alock_holder(&g->process)) ||
		    (w.is_late && revoke_slot(g)))
			pass_slot(&l);
	}
}
