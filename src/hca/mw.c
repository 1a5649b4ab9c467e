/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/mw.h"

#include "hca/hca.h"
#include "util/bits.h"
#include "util/step.h"

#define INVALIDATE_TRIES 8

/*
 * A window is a row of the table of regions, so one lookup by a peer's key
 * finds a region or a window.  A window's lkey only names the window and
 * permits no access.  Its rkey is 0 while the window is unbound.
 *
 * Peers do not write rows.  A peer that invalidates a window writes the
 * window's rkey into peer_area.gone, by one compare-and-swap; from then on
 * mr_key returns 0.  The owner unbinds such a window from its region when the
 * window is bound anew or freed, or when the region is deregistered
 * (mw_settle).
 */

static bool is_window(const struct mr *w)
{
	return w->kind == MR_WINDOW_1 || w->kind == MR_WINDOW_2;
}

struct mr *mw_new(struct hca *h, uint32_t pd, uint32_t type)
{
	struct mr *w;

	mr_enter(h);
	w = mr_row_take(h);
	if (w) {
		w->pd = pd;
		w->kind = type == 1 ? MR_WINDOW_1 : MR_WINDOW_2;
		w->rkey = 0;
	}
	mr_leave(h);
	return w;
}

static void unbind_window(struct hca *h, struct mr *w)
{
	uint32_t region = w->bound;

	__atomic_store_n(&w->rkey, 0, __ATOMIC_RELAXED);
	if (region)
		h->mrs[region].bound--;
	w->bound = 0;
}

void mw_settle(struct hca *h)
{
	uint32_t top = bits_min_u32(h->shared->mr_top, HCA_MAX_MR);

	for (uint32_t i = 1; i < top; i++)
		if (is_window(&h->mrs[i]) && !mr_key(h, &h->mrs[i]))
			unbind_window(h, &h->mrs[i]);
}

void mw_free(struct hca *h, struct mr *w)
{
	mr_enter(h);
	unbind_window(h, w);
	mr_row_give(h, w);
	mr_leave(h);
}

/* Judges the region r, and the part of it that b names (IBTA 10.6.7.2.2), for
 * the window w. */
static enum mr_verdict check_region(const struct mr *w, const struct mr *r,
				    const struct mw_bind *b)
{
	uint32_t writes = HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC;

	if (r->pd != w->pd)
		return MR_BAD_PD;
	if (r->access & HCA_ZERO_BASED)
		return MR_ZERO_BASED;
	if (!(r->access & HCA_MW_BIND) ||
	    ((b->access & writes) && !(r->access & HCA_LOCAL_WRITE)))
		return MR_NO_RIGHT;
	if (b->va < r->iova || b->bytes > r->bytes ||
	    b->va - r->iova > r->bytes - b->bytes)
		return MR_OUTSIDE;
	return MR_OK;
}

/* Judges the bind request b for the window w and the region r.  r is NULL if
 * b->bytes is 0, which unbinds a window of type 1. */
static enum mr_verdict check_bind(const struct hca *h, const struct qp *qp,
				  const struct mr *w, const struct mr *r,
				  const struct mw_bind *b)
{
	bool is_first = w->kind == MR_WINDOW_1;

	if (w->pd != qp->pd) /* C10-72 */
		return MR_BAD_PD;
	if (is_first && (b->access & HCA_ZERO_BASED)) /* o10-36.2.2 */
		return MR_ZERO_BASED;
	if (!is_first && mr_key(h, w)) /* o10-37.2.30 */
		return MR_IS_BOUND;
	if (!is_first && !b->bytes) /* o10-37.2.40 */
		return MR_NO_BYTES;
	return r ? check_region(w, r, b) : MR_OK;
}

/* Returns the new rkey of w: the program chooses the lower 8 bits, the adapter
 * the others. */
static uint32_t key_of(const struct mr *w, const struct mw_bind *b)
{
	return (w->lkey & ~0xffu) | (b->rkey & 0xff);
}

static void bind_window(struct hca *h, const struct qp *qp, struct mr *w,
			struct mr *r, const struct mw_bind *b)
{
	unbind_window(h, w);
	if (!b->bytes)
		return; /* a window of no bytes stays unbound */
	__atomic_store_n(&w->bindings, w->bindings + 1, __ATOMIC_RELAXED);
	/* Orders the stores of rkey 0 in unbind_window and of the odd number in
	 * `bindings` before those of the new members.  A peer loads the members
	 * before it loads rkey and `bindings` again (key_remote).  So a peer
	 * that has loaded a new member finds that `bindings` has changed.
	 * Without the fence the peer could access the new range by the old
	 * key. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	w->access = b->access;
	w->iova = b->access & HCA_ZERO_BASED ? 0 : b->va;
	w->addr = r->addr + (b->va - r->iova);
	w->bytes = b->bytes;
	w->bound = (uint32_t)(r - h->mrs);
	w->qpn = w->kind == MR_WINDOW_2 ? qp->qpn : 0;
	r->bound++;
	/* Orders the stores of the members before that of the even number.
	 * Without this order a peer that has loaded the number (mr_binding)
	 * could then load a member of an earlier binding, and take it for one
	 * of this binding. */
	__atomic_store_n(&w->bindings, w->bindings + 1, __ATOMIC_RELEASE);
	/* The release store of the new rkey orders this store, and those of the
	 * members, before the store of the rkey.  Otherwise a peer could find
	 * the new key with members of an earlier binding.  Or it could take the
	 * new key for invalid, because an equal key that was invalidated
	 * earlier is still in `gone`. */
	__atomic_store_n(&h->peer_area->gone[w - h->mrs], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&w->rkey, key_of(w, b), __ATOMIC_RELEASE);
}

enum mr_verdict mw_bind(struct hca *h, const struct qp *qp,
			const struct mw_bind *b)
{
	struct mr *w, *r;
	enum mr_verdict v = MR_BAD_KEY;

	mr_enter(h);
	w = mr_find(h, b->window);
	r = b->bytes ? mr_find(h, b->region) : NULL;
	if (w && is_window(w) && (!b->bytes || (r && r->kind == MR_REGION)))
		v = check_bind(h, qp, w, r, b);
	if (v == MR_OK)
		bind_window(h, qp, w, r, b);
	mr_leave(h);
	return v;
}

/* May a request at qp, of qp itself or of its peer, invalidate the key `rkey`
 * of w? */
static enum mr_verdict judge_key(const struct hca *h, const struct qp *qp,
				 const struct mr *w, uint32_t rkey)
{
	if (mr_key(h, w) != rkey)
		return MR_BAD_KEY;
	if (w->kind != MR_WINDOW_2)
		return MR_NO_RIGHT;
	if (w->pd != qp->pd)
		return MR_BAD_PD;
	return w->qpn == qp->qpn ? MR_OK : MR_BAD_QP;
}

enum mr_verdict mw_invalidate(struct hca *h, const struct qp *qp, uint32_t rkey)
{
	struct mr *w = mr_find(h, rkey);
	uint32_t *gone, seen, tries = INVALIDATE_TRIES;
	enum mr_verdict v;

	if (!w)
		return MR_BAD_KEY;
	gone = &h->peer_area->gone[w - h->mrs];
	/* If `gone` has changed since it was loaded, another thread has
	 * invalidated this key or one that the window had earlier, or has bound
	 * the window anew.  The key is judged again: an invalid key, which may
	 * be in `gone`, must stay invalid, and a valid one must become invalid.
	 * A hostile peer may write `gone` again and again, hence the limit. */
	do {
		if (!tries--)
			return MR_BAD_KEY;
		/* Acquire: orders this load before those of the row, so that
		 * the exchange fails if `gone` has another value than before
		 * the judgement.  Without this order the load could find the 0
		 * of a new binding, although the judgement is that of an
		 * earlier binding by the same key, for example to another QP.
		 * The exchange does not notice if the window is invalidated and
		 * bound anew by the same key between this load and the
		 * exchange: `gone` is 0 at both times. */
		seen = __atomic_load_n(gone, __ATOMIC_ACQUIRE);
		v = judge_key(h, qp, w, rkey);
		if (v != MR_OK)
			return v;
		STEP("a window's key is judged");
	} while (!__atomic_compare_exchange_n(
		gone, &seen, rkey, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	STEP("a window's key is gone");
	/* The exchange may have found the 0 of a new binding.  Its acquire
	 * order and the fence in bind_window order the store of rkey 0 before
	 * this load, which then finds that the row has lost the key. */
	return __atomic_load_n(&w->rkey, __ATOMIC_RELAXED) == rkey ? MR_OK
								   : MR_BAD_KEY;
}
