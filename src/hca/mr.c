/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/mr.h"

#include <errno.h>
#include <string.h>

#include "hca/key.h"
#include "util/bits.h"

/*
 * A key has 32 bits.  The upper 24 are a permutation of 16 bits with the row's
 * index and 8 bits with a generation, which is drawn at random for each use of
 * the row; the lower 8 are random, too:
 *
 *	| permuted(row 16, generation 8) 24 | tag 8 |
 *
 * The arena's secret determines the permutation, so keys look random and still
 * lead to their row without a search.  The row keeps all 32 bits, and only an
 * exact match counts.  Freed rows go to the tail of the free list, so that the
 * key of a freed region stays invalid as long as possible.
 */
#define HALF_MASK 0xfffu

static uint32_t round_of(const struct hca_shared *s, int round, uint32_t half)
{
	uint64_t x = s->key_secret[round & 1] + half +
		     (uint64_t)round * 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)(x >> 40) & HALF_MASK;
}

static uint32_t permute_key(const struct hca_shared *s, uint32_t v)
{
	uint32_t l = v >> 12, r = v & HALF_MASK;

	for (int i = 0; i < 6; i++) {
		uint32_t t = l ^ round_of(s, i, r);

		l = r;
		r = t;
	}
	return l << 12 | r;
}

static uint32_t unpermute_key(const struct hca_shared *s, uint32_t v)
{
	uint32_t l = v >> 12, r = v & HALF_MASK;

	for (int i = 5; i >= 0; i--) {
		uint32_t t = r ^ round_of(s, i, l);

		r = l;
		l = t;
	}
	return l << 12 | r;
}

static uint32_t key_new(struct hca *h, uint32_t row, uint32_t generation)
{
	uint32_t upper = permute_key(h->shared, row << 8 | (generation & 0xff));

	return upper << 8 | (rng_u32(&h->rng) & 0xff);
}

/*
 * Draws the keys of a row.  A key is at least 256, because some programs take a
 * smaller key for "none".  lkey and rkey are equal, because some programs give
 * peers a region's lkey as its rkey, which works with hardware adapters.  The
 * region's rights still separate local access from access by peers.
 */
static void set_keys(struct hca *h, struct mr *mr)
{
	uint32_t row = (uint32_t)(mr - h->mrs);
	uint32_t generation = rng_u32(&h->rng);
	uint32_t key;

	do
		key = key_new(h, row, generation++);
	while (key < 256);
	mr->rkey = key;
	mr->lkey = key;
}

void mr_enter(struct hca *h)
{
	alock_take(&h->shared->mr_lock);
}

void mr_leave(struct hca *h)
{
	alock_give(&h->shared->mr_lock);
}

struct mr *mr_row_take(struct hca *h)
{
	struct hca_shared *s = h->shared;
	struct mr *mr = NULL;

	if (s->mr_top < HCA_MAX_MR) {
		mr = &h->mrs[s->mr_top++];
	} else if (s->mr_free_head) {
		mr = &h->mrs[s->mr_free_head];
		s->mr_free_head = mr->next_free;
		if (!s->mr_free_head)
			s->mr_free_tail = 0;
	}
	if (mr) {
		/* The fence orders the store of rkey 0 in mr_row_give, perhaps
		 * by another thread, before the stores of the new members: a
		 * peer that loads a new member then finds that the row has lost
		 * the old key (key_remote).  Without the fence the peer could
		 * access the new region by the key of the freed region. */
		__atomic_thread_fence(__ATOMIC_RELEASE);
		h->peer_area->gone[mr - h->mrs] = 0;
		memset(mr, 0, sizeof(*mr));
		set_keys(h, mr);
	}
	return mr;
}

void mr_row_give(struct hca *h, struct mr *mr)
{
	struct hca_shared *s = h->shared;
	uint32_t row = (uint32_t)(mr - h->mrs);

	memset(mr, 0, sizeof(*mr));
	if (s->mr_free_tail)
		h->mrs[s->mr_free_tail].next_free = row;
	else
		s->mr_free_head = row;
	s->mr_free_tail = row;
}

struct mr *mr_new(struct hca *h, uint32_t pd, uint64_t addr, uint64_t bytes,
		  uint64_t iova, uint32_t access)
{
	struct mr *mr;

	mr_enter(h);
	mr = mr_row_take(h);
	if (mr) {
		mr->pd = pd;
		mr->access = access;
		mr->iova = iova;
		mr->addr = addr;
		mr->bytes = bytes;
		mr->kind = MR_REGION;
	}
	mr_leave(h);
	return mr;
}

int mr_free(struct hca *h, struct mr *mr)
{
	int err = -EBUSY;

	mr_enter(h);
	if (mr->bound)
		mw_settle(h);
	if (!mr->bound) {
		mr_row_give(h, mr);
		err = 0;
	}
	mr_leave(h);
	return err;
}

static bool has_key(const struct mr *mr, uint32_t key)
{
	return key && mr->kind != MR_FREE &&
	       (mr->lkey == key || mr->rkey == key);
}

struct mr *mr_find(struct hca *h, uint32_t key)
{
	struct mr *mr = key_hint(h, key);
	uint32_t row;

	/* A hint may be out of date, so the key is compared. */
	if (has_key(mr, key))
		return mr;
	row = unpermute_key(h->shared, key >> 8) >> 8 & (HCA_MAX_MR - 1);
	mr = &h->mrs[row];
	if (!has_key(mr, key))
		return NULL;
	shared_store(&h->hints[key % HCA_HINTS], row);
	return mr;
}

enum mr_verdict mr_local(struct hca *h, uint32_t pd, uint32_t lkey, uint64_t va,
			 uint64_t bytes, uint32_t need, uint64_t *addr)
{
	struct mr *mr = mr_find(h, lkey);

	if (!mr || mr->lkey != lkey || mr->kind != MR_REGION)
		return MR_BAD_KEY;
	if (mr->pd != pd)
		return MR_BAD_PD;
	return key_range(mr, va, bytes, need, addr);
}

enum mr_verdict mr_remote(struct hca *h, const struct qp *qp, uint32_t rkey,
			  uint64_t va, uint64_t bytes, uint32_t need,
			  uint64_t *addr)
{
	struct mr *mr = mr_find(h, rkey);
	uint32_t binding = mr ? mr_binding(mr) : 0;

	if (!mr || mr_key(h, mr) != rkey)
		return MR_BAD_KEY;
	if (mr->pd != qp->pd)
		return MR_BAD_PD;
	if (mr->qpn && mr->qpn != qp->qpn)
		return MR_BAD_QP;
	return key_remote(h, mr, binding, rkey, va, bytes, need, addr);
}
