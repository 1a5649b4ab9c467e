/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Import of contexts, protection domains and memory regions: a second handle in
 * the same process.  Each context has a file of its own as its descriptor, so
 * that a duplicate of the descriptor identifies the context.  A descriptor of
 * another process's context identifies nothing, since each process has an
 * adapter of its own.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_device *device = v_device_of_fd(cmd_fd);

	if (!device)
		return v_fail_null(EOPNOTSUPP, V_INPUT,
				   "ibv_import_device: this process has no "
				   "context with that descriptor");
	return v_open_device(device, cmd_fd);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct v_context *c = v_context(context);
	struct v_pd *pd;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_import_pd");
	if (!handle || handle > host_hca(c->host)->shared->next_pd)
		return v_fail_null(ENOENT, V_INPUT,
				   "ibv_import_pd: this process has no "
				   "protection domain with that handle");
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_import_pd");
	pd->number = handle;
	pd->base.context = context;
	pd->base.handle = handle;
	count_up(&pd->users);
	count_up(&c->objects);
	return &pd->base;
}

/* The function cannot fail with EBUSY as ibv_dealloc_pd does, so a handle that
 * objects use stays until the last of them is destroyed. */
void ibv_unimport_pd(struct ibv_pd *pd)
{
	v_pd_drop(v_pd(pd));
}

/* addr stays NULL, as ibv_import_mr(3) documents. */
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct v_context *c = v_context(pd->context);
	struct v_mr *m;
	struct mr *row;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_import_mr");
	m = calloc(1, sizeof(*m));
	if (!m)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_import_mr");
	host_lock(c->host);
	row = mr_find(host_hca(c->host), handle);
	if (row && (row->kind != MR_REGION || row->lkey != handle ||
		    row->pd != v_pd(pd)->number))
		row = NULL;
	if (row)
		*m = (struct v_mr){.base = {.context = pd->context,
					    .pd = pd,
					    .length = row->bytes,
					    .handle = handle,
					    .lkey = row->lkey,
					    .rkey = row->rkey},
				   .mr = row,
				   .is_imported = true};
	host_unlock(c->host);
	if (!row) {
		free(m);
		return v_fail_null(ENOENT, V_INPUT,
				   "ibv_import_mr: the protection domain has "
				   "no memory region with that handle");
	}
	count_up(&v_pd(pd)->users);
	count_up(&c->objects);
	return &m->base;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	v_mr_drop(v_mr(mr));
}

/* Fails with EOPNOTSUPP, without a message: programs try this call first, and
 * then register memory in another way. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	errno = EOPNOTSUPP;
	return NULL;
}
