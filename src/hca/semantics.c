/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/semantics.h"

#include <string.h>

#include "util/bits.h"

static enum hca_status refuse_access(enum mr_verdict v,
				     const struct wq_sge *part, struct hca *h,
				     uint32_t need, struct explain *x)
{
	const struct mr *mr = mr_find(h, part->lkey);

	x->cause = EXPLAIN_LOCAL_KEY;
	x->verdict = v;
	x->key = part->lkey;
	x->va = part->va;
	x->bytes = part->bytes;
	x->need = need;
	if (mr) {
		x->region_va = mr->iova;
		x->region_bytes = mr->bytes;
	}
	return HCA_LOC_PROT_ERR;
}

enum hca_status sem_check(struct hca *h, uint32_t pd, struct wqe *w,
			  uint32_t need, struct explain *x)
{
	struct wq_sge *s = wqe_sges(w);
	uint64_t addr;

	if (w->flags & HCA_SEND_INLINE)
		return HCA_SUCCESS;
	for (uint32_t i = 0; i < w->num_sge; i++) {
		enum mr_verdict v;

		if (!s[i].bytes)
			continue; /* a zero-length SGE names no memory */
		v = mr_local(h, pd, s[i].lkey, s[i].va, s[i].bytes, need,
			     &addr);
		if (v)
			return refuse_access(v, &s[i], h, need, x);
	}
	return HCA_SUCCESS;
}

enum hca_status sem_locate_any(struct hca *h, uint32_t pd, struct wqe *w,
			       uint32_t offset, uint32_t bytes, uint32_t need,
			       struct space_vec *vec, size_t *n,
			       struct explain *x)
{
	uint32_t count = wqe_sge_count(w), left = bytes;
	uint64_t skip = offset;

	*n = 0;
	for (uint32_t i = 0; i < count && left; i++) {
		struct wq_sge part = wqe_sge_read(w, i);
		enum mr_verdict v;
		uint64_t addr;

		if (skip >= part.bytes) {
			skip -= part.bytes;
			continue;
		}
		part.va += skip;
		part.bytes = bits_min_u32(part.bytes - (uint32_t)skip, left);
		v = mr_local(h, pd, part.lkey, part.va, part.bytes, need,
			     &addr);
		if (v)
			return refuse_access(v, &part, h, need, x);
		vec[(*n)++] = (struct space_vec){addr, part.bytes};
		left -= part.bytes;
		skip = 0;
	}
	if (!left)
		return HCA_SUCCESS;
	x->cause = EXPLAIN_LOCAL_ROOM;
	x->bytes = (uint64_t)offset + bytes;
	x->region_bytes = sem_capacity(w);
	return HCA_LOC_LEN_ERR;
}

static enum hca_status note_fault(const struct space_vec *vec, size_t n,
				  struct explain *x)
{
	x->cause = EXPLAIN_LOCAL_FAULT;
	x->va = n ? vec[0].va : 0;
	x->bytes = n ? vec[0].bytes : 0;
	return HCA_LOC_PROT_ERR;
}

/* Does the work of sem_gather and sem_gather_crc32c; kind: the kind of CRC. */
static enum hca_status gather_bytes(struct hca *h, uint32_t pd, struct wqe *w,
				    uint32_t offset, uint32_t bytes,
				    uint8_t *out, enum crc_kind kind,
				    uint32_t *crc, struct explain *x)
{
	struct space_vec vec[SPACE_VEC_MAX];
	enum hca_status status;
	size_t n;

	if (w->flags & HCA_SEND_INLINE) {
		memcpy(out, (const uint8_t *)(w + 1) + offset, bytes);
		if (crc)
			*crc = crc_update(kind, *crc, out, bytes);
		return HCA_SUCCESS;
	}
	status = sem_locate(h, pd, w, offset, bytes, 0, vec, &n, x);
	if (status)
		return status;
	if (n && (crc ? space_read_crc(h->space, vec, n, out, kind, crc)
		      : h->space->ops->read(h->space, vec, n, out)))
		return note_fault(vec, n, x);
	return HCA_SUCCESS;
}

enum hca_status sem_gather(struct hca *h, uint32_t pd, struct wqe *w,
			   uint32_t offset, uint32_t bytes, uint8_t *out,
			   uint32_t *crc, struct explain *x)
{
	return gather_bytes(h, pd, w, offset, bytes, out, CRC_32, crc, x);
}

enum hca_status sem_gather_crc32c(struct hca *h, uint32_t pd, struct wqe *w,
				  uint32_t offset, uint32_t bytes, uint8_t *out,
				  uint32_t *crc, struct explain *x)
{
	return gather_bytes(h, pd, w, offset, bytes, out, CRC_32C, crc, x);
}

enum hca_status sem_scatter_crc32c(struct hca *h, uint32_t pd, struct wqe *w,
				   uint32_t offset, const uint8_t *data,
				   uint32_t bytes, uint32_t *crc,
				   struct explain *x)
{
	struct space_vec vec[SPACE_VEC_MAX];
	enum hca_status status;
	size_t n;

	status = sem_locate(h, pd, w, offset, bytes, HCA_LOCAL_WRITE, vec, &n,
			    x);
	if (status)
		return status;
	if (n && (crc ? space_write_crc(h->space, vec, n, data, CRC_32C, crc)
		      : h->space->ops->write(h->space, vec, n, data)))
		return note_fault(vec, n, x);
	return HCA_SUCCESS;
}

enum hca_status sem_scatter(struct hca *h, uint32_t pd, struct wqe *w,
			    uint32_t offset, const uint8_t *data,
			    uint32_t bytes, struct explain *x)
{
	return sem_scatter_crc32c(h, pd, w, offset, data, bytes, NULL, x);
}

uint64_t sem_capacity(struct wqe *w)
{
	uint32_t count = wqe_sge_count(w);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += wqe_sge_read(w, i).bytes;
	return sum;
}
