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

/* Are all SGEs of w usable?  `need` as in mr_local. */
enum hca_status sem_check(struct hca *h, uint32_t pd, struct wqe *w,
			  uint32_t need, struct explain *x);
/*
 * The stretches of memory behind [offset, offset + bytes) of w, checked; vec
 * holds SPACE_VEC_MAX.  HCA_LOC_LEN_ERR when the SGEs end before.
 */
enum hca_status sem_locate(struct hca *h, uint32_t pd, struct wqe *w,
			   uint32_t offset, uint32_t bytes, uint32_t need,
			   struct space_vec *vec, size_t *n, struct explain *x);
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
