/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers whose memory the device chooses (ibv_alloc_buf), and registration by
 * attributes.  Any memory is as good to us, so that of the heap is given: a
 * forked child has its copy, and a sanitizer sees what goes past the end.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/fail.h"
#include "verbs/newer.h"
#include "verbs/object.h"

/* Opaque to programs.  The domain is compared and not followed. */
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
		return v_fail_null(err, V_SYSTEM, "ibv_alloc_buf");
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
			    "ibv_export_buf_dmabuf_fd: the buffer is ordinary "
			    "memory, behind which is no dma-buf");
}

/* 0 or EINVAL, said. */
static int check_buf(const struct ibv_pd *pd, const struct v_mr_init_attr *a)
{
	const struct v_buf *b = v_buf(a->buf);
	uintptr_t offset = (uintptr_t)a->addr - (uintptr_t)b->memory;

	if (b->pd != pd)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex: the buffer is of another "
			      "protection domain");
	/* an address before it makes a large offset */
	if (offset > b->bytes || a->length > b->bytes - offset)
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex: the range is not inside the "
			      "buffer");
	return 0;
}

/* 0 or a positive errno, said. */
static int check_attr(const struct ibv_pd *pd, const struct v_mr_init_attr *a)
{
	const uint64_t known = V_REG_MR_IOVA | V_REG_MR_ADDR | V_REG_MR_FD |
			       V_REG_MR_FD_OFFSET | V_REG_MR_DMAH |
			       V_REG_MR_BUF;
	const uint64_t files = V_REG_MR_FD | V_REG_MR_FD_OFFSET;

	if (a->comp_mask & ~known)
		return v_fail(EOPNOTSUPP, V_NOT_BUILT,
			      "ibv_reg_mr_ex with an attribute of later "
			      "releases");
	if ((a->comp_mask & V_REG_MR_BUF) && (a->comp_mask & files))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex: a buffer and a descriptor at "
			      "once");
	if (a->comp_mask & files)
		return v_fail(EOPNOTSUPP, V_NOT_BUILT,
			      "ibv_reg_mr_ex of a dma-buf");
	if (a->comp_mask & V_REG_MR_DMAH)
		return v_fail(EOPNOTSUPP, V_NOT_BUILT,
			      "ibv_reg_mr_ex with a hint for caches "
			      "(ibv_alloc_dmah)");
	if (!(a->comp_mask & V_REG_MR_ADDR))
		return v_fail(EINVAL, V_INPUT,
			      "ibv_reg_mr_ex: an address is needed "
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
