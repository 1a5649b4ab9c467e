/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys whose row is known, or nearly: what is looked up for each request of a
 * few bytes.  mr.c has all of it.
 */
#ifndef HCA_KEY_H
#define HCA_KEY_H

#include "hca/hca.h"
#include "util/step.h"

/* The row that had this key lately, or that of another key: compare. */
static inline struct mr *key_hint(struct hca *h, uint32_t key)
{
	return &h->mrs[shared_load(&h->hints[key % HCA_HINTS])];
}

/* [va, va + bytes) of mr, and where that lies in the owner's memory. */
static inline enum mr_verdict key_range(const struct mr *mr, uint64_t va,
					uint64_t bytes, uint32_t need,
					uint64_t *addr)
{
	if ((mr->access & need) != need)
		return MR_NO_RIGHT;
	if (va < mr->iova || bytes > mr->bytes ||
	    va - mr->iova > mr->bytes - bytes)
		return MR_OUTSIDE;
	*addr = mr->addr + (va - mr->iova);
	return MR_OK;
}

/* As mr_remote, of the row that had rkey for this queue pair before. */
static inline enum mr_verdict key_remote(const struct hca *h,
					 const struct mr *mr, uint32_t rkey,
					 uint64_t va, uint64_t bytes,
					 uint32_t need, uint64_t *addr)
{
	enum mr_verdict v;

	STEP("a key's row is found");
	v = key_range(mr, va, bytes, need, addr);
	/* a window that is bound anew meanwhile has another key: see mw.c */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return mr_key(h, mr) == rkey ? v : MR_BAD_KEY;
}

#endif
