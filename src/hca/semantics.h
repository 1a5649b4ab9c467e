/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The meaning of a message, without packets: which memory a work request
 * names, gathering it, placing into it.  Used by every transport.  Each call
 * answers 0, or the status of the work request that it fails, and fills the
 * facts of *x for the sentence.
 */
#ifndef HCA_SEMANTICS_H
#define HCA_SEMANTICS_H

#include "hca/explain.h"
#include "hca/hca.h"
#include "hca/key.h"

/* Are all SGEs of w usable, whole?  `need` as in mr_local. */
enum hca_status sem_check(struct hca *h, uint32_t pd, struct wqe *w,
			  uint32_t need, struct explain *x);
/* sem_locate, whatever w has. */
enum hca_status sem_locate_any(struct hca *h, uint32_t pd, struct wqe *w,
			       uint32_t offset, uint32_t bytes, uint32_t need,
			       struct space_vec *vec, size_t *n,
			       struct explain *x);
/* It has one element, of a region that was used lately, and that is right. */
static inline bool sem_locate_one(struct hca *h, uint32_t pd, struct wqe *w,
				  uint32_t offset, uint32_t bytes,
				  uint32_t need, struct space_vec *vec)
{
	const struct wq_sge *s = wqe_sges(w);
	const struct mr *mr;
	uint64_t addr;

	if (w->num_sge != 1 || !bytes || (uint64_t)offset + bytes > s->bytes)
		return false;
	mr = key_hint(h, s->lkey);
	if (mr->lkey != s->lkey || mr->kind != MR_REGION || mr->pd != pd ||
	    key_range(mr, s->va + offset, bytes, need, &addr))
		return false;
	*vec = (struct space_vec){addr, bytes};
	return true;
}
/*
 * The stretches of memory behind [offset, offset + bytes) of w; vec holds
 * SPACE_VEC_MAX.  These bytes are checked, and nothing else of w: its other
 * SGEs, and the rest of these, may have any key and lie anywhere.
 * HCA_LOC_LEN_ERR when the SGEs end before.
 */
static inline enum hca_status sem_locate(struct hca *h, uint32_t pd,
					 struct wqe *w, uint32_t offset,
					 uint32_t bytes, uint32_t need,
					 struct space_vec *vec, size_t *n,
					 struct explain *x)
{
	*n = 1;
	if (sem_locate_one(h, pd, w, offset, bytes, need, vec))
		return HCA_SUCCESS;
	return sem_locate_any(h, pd, w, offset, bytes, need, vec, n, x);
}
/*
 * Copy [offset, offset + bytes) of w's message out of its SGEs or inline; *crc
 * (NULL: none) gets on by it (util/crc.h).
 */
enum hca_status sem_gather(struct hca *h, uint32_t pd, struct wqe *w,
			   uint32_t offset, uint32_t bytes, uint8_t *out,
			   uint32_t *crc, struct explain *x);
/* Copy into w's SGEs at offset; HCA_LOC_LEN_ERR when they end before. */
enum hca_status sem_scatter(struct hca *h, uint32_t pd, struct wqe *w,
			    uint32_t offset, const uint8_t *data,
			    uint32_t bytes, struct explain *x);
/* The bytes that w's SGEs hold, up to 2^32 - 1. */
uint64_t sem_capacity(struct wqe *w);

#endif
