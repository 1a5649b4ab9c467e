/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers that the library allocates (ibv_alloc_buf), and registration by
 * attributes.  adverb can use any memory, so the buffers are on the heap: a
 * forked child has a copy, and a sanitizer detects accesses past the end.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/fail.h"
#include "verbs/newer.h"
#include "verbs/object.h"

/* struct ibv_buf, which is opaque to programs.  `pd` is compared and never
 * dereferenced: the program may have freed the domain. */
struct v_buf {
	char *memory;
	size_t bytes;
	const struct ibv_pd *pd;
};

static struct v_buf *v_buf(struct ibv_buf *buf)
{
	return (struct v_buf *)(void *)buf;
}

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	struct v_buf *b = calloc(1, sizeof(*b));
	void *memory = NULL;
	int err = ENOMEM;

	if (b)
		err = posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE),
				     size);
	if (err) {
		free(b);
		return v_fail_null(err, V_MEMORY, "ibv_alloc_buf");
	}
	*b = (struct v_buf){memory, size, pd};
	*buf = (struct ibv_buf *)(void *)b;
	return memory;
}

void ibv_free_buf(struct ibv_buf *buf)
{
	free(v_buf(buf)->memory);
	free(v_buf(buf));
}

int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	return v_fail_errno(ENODATA, V_SYSTEM,
			    "ibv_export_buf_dmabuf_fd fails: a buffer of "
			    "ibv_alloc_buf is ordinary memory and has no "
			    "dma-buf");
}

/* Returns 0, or EINVAL with a message. */
static int check_buf(const struct ibv_pd *pd, const struct v_mr_init_attr *a)
{
	const struct v_buf *b = v_buf(a->buf);
	uintptr_t offset = (uintptr_t)a->addr - (uintptr_t)b->memory;

	if (b->pd != pd)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex or ibv_reg_buf_mr: the buffer "
			      "belongs to another protection domain; pass the "
			      "domain of ibv_alloc_buf");
	/* An address before the buffer gives a large offset. */
	if (offset > b->bytes || a->length > b->bytes - offset)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex or ibv_reg_buf_mr: the range of "
			      "addr and length is not inside the buffer");
	return 0;
}

/* Returns 0, or a positive errno with a message. */
static int check_attr(const struct ibv_pd *pd, const struct v_mr_init_attr *a)
{
	const uint64_t known = V_REG_MR_IOVA | V_REG_MR_ADDR | V_REG_MR_FD |
			       V_REG_MR_FD_OFFSET | V_REG_MR_DMAH |
			       V_REG_MR_BUF;
	const uint64_t files = V_REG_MR_FD | V_REG_MR_FD_OFFSET;

	if (a->comp_mask & ~known)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "an attribute of a release of rdma-core after 65 "
			      "(ibv_reg_mr_ex)");
	if ((a->comp_mask & V_REG_MR_BUF) && (a->comp_mask & files))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex takes a buffer or a descriptor, "
			      "not both");
	if (a->comp_mask & files)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "registration of a dma-buf (ibv_reg_mr_ex)");
	if (a->comp_mask & V_REG_MR_DMAH)
		return v_fail(EOPNOTSUPP, V_NOT_SUPPORTED,
			      "registration with a cache hint "
			      "(ibv_alloc_dmah)");
	if (!(a->comp_mask & V_REG_MR_ADDR))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex needs an address "
			      "(IBV_REG_MR_MASK_ADDR)");
	return a->comp_mask & V_REG_MR_BUF ? check_buf(pd, a) : 0;
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	const struct v_mr_init_attr *a = (const void *)attr;
	bool has_iova = a->comp_mask & V_REG_MR_IOVA;

	if (check_attr(pd, a))
		return NULL;
	return ibv_reg_mr_iova2(pd, a->addr, a->length,
				has_iova ? a->iova : (uintptr_t)a->addr,
				(unsigned int)a->access);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
			      void *addr, size_t length, int access)
{
	struct v_mr_init_attr a = {
		.length = length,
		.access = access,
		.comp_mask = V_REG_MR_ADDR | V_REG_MR_BUF,
		.addr = addr,
		.buf = buf,
	};

	return ibv_reg_mr_ex(pd, (struct ibv_mr_init_attr *)(void *)&a);
}
