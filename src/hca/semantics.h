/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a work request.  These functions find the memory that its SGEs
 * name, gather from this memory and scatter into it.  RC, UC, UD and iWARP use
 * them.  pd is the number of the protection domain to which the keys must
 * belong.  A function of type enum hca_status returns HCA_SUCCESS (0), or fills
 * in the facts of *x and returns the status with which the work request fails.
 */
#ifndef HCA_SEMANTICS_H
#define HCA_SEMANTICS_H

#include "hca/explain.h"
#include "hca/hca.h"
#include "hca/key.h"

/* Checks that the keys of w's SGEs permit access to all bytes of these SGEs; if
 * w has inline data, checks nothing.  @need: 0 or HCA_LOCAL_WRITE. */
enum hca_status sem_check(struct hca *h, uint32_t pd, struct wqe *w,
			  uint32_t need, struct explain *x);
/* The general case of sem_locate: any number of SGEs, any key. */
enum hca_status sem_locate_any(struct hca *h, uint32_t pd, struct wqe *w,
			       uint32_t offset, uint32_t bytes, uint32_t need,
			       struct space_vec *vec, size_t *n,
			       struct explain *x);
/* The frequent case of sem_locate: w has one SGE, key_hint finds the region of
 * its key, bytes is not 0, and the access is permitted.  Fills in *vec.  False:
 * the caller calls sem_locate_any. */
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
 * Fills vec, which has room for SPACE_VEC_MAX ranges, with the memory of bytes
 * [offset, offset + bytes) of w, and *n with the number of ranges.  @need: 0 or
 * HCA_LOCAL_WRITE.  Checks only these bytes: the other bytes of w's SGEs may
 * have any key and lie anywhere.  HCA_LOC_LEN_ERR: the SGEs end before offset +
 * bytes.
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
 * Copies bytes [offset, offset + bytes) of w's message, from its SGEs or its
 * inline data, to out.  If crc is not NULL, *crc is updated with the bytes
 * (crc32_update); after an error *crc has no meaning.
 */
enum hca_status sem_gather(struct hca *h, uint32_t pd, struct wqe *w,
			   uint32_t offset, uint32_t bytes, uint8_t *out,
			   uint32_t *crc, struct explain *x);
/* Does the work of sem_gather, but updates *crc by crc32c_update. */
enum hca_status sem_gather_crc32c(struct hca *h, uint32_t pd, struct wqe *w,
				  uint32_t offset, uint32_t bytes, uint8_t *out,
				  uint32_t *crc, struct explain *x);
/* Copies `bytes` bytes of data to bytes [offset, offset + bytes) of w's SGEs.
 * HCA_LOC_LEN_ERR: the SGEs end before offset + bytes. */
enum hca_status sem_scatter(struct hca *h, uint32_t pd, struct wqe *w,
			    uint32_t offset, const uint8_t *data,
			    uint32_t bytes, struct explain *x);
/* Does the work of sem_scatter.  If crc is not NULL, *crc is updated with the
 * bytes (crc32c_update); after an error *crc has no meaning. */
enum hca_status sem_scatter_crc32c(struct hca *h, uint32_t pd, struct wqe *w,
				   uint32_t offset, const uint8_t *data,
				   uint32_t bytes, uint32_t *crc,
				   struct explain *x);
/* Returns the sum of the lengths of w's SGEs, in bytes. */
uint64_t sem_capacity(struct wqe *w);

#endif
