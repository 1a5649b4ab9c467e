/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of a key's lookup that each small request needs, as inline
 * functions.  mr.c has the whole lookup.
 */
#ifndef HCA_KEY_H
#define HCA_KEY_H

#include "hca/hca.h"
#include "util/step.h"

/* Returns the row that h->hints has for `key`.  The row may have another key,
 * since many keys share an entry of hints; row 0 has no key.  So the caller
 * compares the row's key with `key`. */
static inline struct mr *key_hint(struct hca *h, uint32_t key)
{
	return &h->mrs[shared_load(&h->hints[key % HCA_HINTS])];
}

/* Judges an access to [va, va + bytes) by the row mr.  @need: the rights that
 * the access needs, enum hca_access.  Returns MR_NO_RIGHT, MR_OUTSIDE, or
 * MR_OK: then *addr is the owner's address of va. */
static inline enum mr_verdict key_range(const struct mr *mr, uint64_t va,
					uint64_t bytes, uint32_t need,
					uint64_t *addr)
{
	if ((mr->access & need) != need)
		return MR_NO_RIGHT;
	if (va < mr->iova || bytes > mr->bytes ||
	    va - mr->iova > mr->bytes - bytes)
		return MR_OUTSIDE;
	STEP("a key's range is judged");
	*addr = mr->addr + (va - mr->iova);
	return MR_OK;
}

/*
 * Does the rest of mr_remote for the row mr, which had the key rkey: judges the
 * right and the range, and then checks that the row still has rkey, by the same
 * binding.  @binding: the result of mr_binding, which the caller has called
 * before it checked the key, the protection domain and the QP.  Returns the
 * verdict of key_range, or MR_BAD_KEY if the row has lost the key or was bound
 * anew; *addr is valid only with MR_OK.
 */
static inline enum mr_verdict key_remote(const struct hca *h,
					 const struct mr *mr, uint32_t binding,
					 uint32_t rkey, uint64_t va,
					 uint64_t bytes, uint32_t need,
					 uint64_t *addr)
{
	enum mr_verdict v;

	STEP("a key's row is found");
	v = key_range(mr, va, bytes, need, addr);
	/* Orders the loads of the row's members before those of its key and of
	 * the number of its binding.  bind_window stores the key 0 and an odd
	 * number, then the members, then the next number and the new key.  So
	 * if a member of a new binding was loaded, the number is now another
	 * one than `binding`.  Without the fence the old key could permit an
	 * access to the new range, or to a mixture of the old range and the new
	 * one. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return mr_key(h, mr) == rkey && !(binding & 1) &&
			       __atomic_load_n(&mr->bindings,
					       __ATOMIC_RELAXED) == binding
		       ? v
		       : MR_BAD_KEY;
}

#endif
