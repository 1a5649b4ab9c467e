/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Import of contexts, protection domains and memory regions: a second handle in
 * the same process.  Each context of ibv_open_device has a file of its own as
 * its descriptor, so that a duplicate of the descriptor identifies the context.
 * A descriptor of another process's context identifies nothing, since each
 * process has an adapter of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "verbs/fail.h"
#include "verbs/object.h"
#include "verbs/ops.h"

/* Fails with EINVAL, as in rdma-core, if cmd_fd is not open, and with
 * EOPNOTSUPP if no open context of this process has the file of cmd_fd. */
struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_device *device = v_device_of_fd(cmd_fd);

	if (!device)
		return v_fail_number(
			fcntl(cmd_fd, F_GETFD) < 0 ? EINVAL : EOPNOTSUPP,
			"ibv_import_device of descriptor", cmd_fd,
			"no open context of this process has the descriptor's "
			"file; pass a duplicate of the cmd_fd of an "
			"ibv_context that is open");
	return v_open_device(device, cmd_fd);
}

/* Returns why v_pd_import has failed for the handle, and what to do. */
static const char *why_no_domain(struct v_context *c, uint32_t handle)
{
	uint32_t latest;

	host_lock(c->host);
	latest = host_hca(c->host)->shared->next_pd;
	host_unlock(c->host);
	if (handle && handle <= latest)
		return "ibv_dealloc_pd has freed the protection domain; import "
		       "it before, or allocate another";
	return "no protection domain of this process has had this handle; pass "
	       "the member `handle` of an ibv_pd";
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct v_context *c = v_context(context);
	struct v_pd *pd;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_import_pd");
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_import_pd");
	list_init(&pd->same);
	if (!v_pd_import(c, handle, pd)) {
		free(pd);
		return v_fail_number(ENOENT, "ibv_import_pd of handle", handle,
				     why_no_domain(c, handle));
	}
	pd->number = handle;
	pd->base.context = context;
	pd->base.handle = handle;
	count_up(&pd->users);
	count_up(&c->objects);
	return &pd->base;
}

/* The function cannot fail with EBUSY as ibv_dealloc_pd does, so a handle that
 * objects use stays until the last of them is destroyed. */
void ibv_unimport_pd(struct ibv_pd *ibpd)
{
	struct v_context *c = v_context(ibpd->context);
	struct v_pd *pd = v_pd(ibpd);

	if (v_is_ours(c)) {
		host_lock(c->host);
		pd->is_returned = true;
		host_unlock(c->host);
	}
	v_pd_drop(pd);
}

/* Returns why `row`, which mr_find has returned for the handle, cannot be
 * imported into the domain; NULL: it can. */
static const char *why_no_region(const struct mr *row, uint32_t handle,
				 const struct v_pd *pd)
{
	if (!row || row->kind != MR_REGION || row->lkey != handle)
		return "this process has no memory region with this handle; "
		       "pass the member `handle` of an ibv_mr that is "
		       "registered";
	if (row->pd != pd->number)
		return "the memory region belongs to another protection "
		       "domain; import that domain, and pass it";
	return NULL;
}

/* addr stays NULL, as ibv_import_mr(3) documents. */
struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct v_context *c = v_context(pd->context);
	const char *why;
	struct v_mr *m;
	struct mr *row;

	if (!v_is_ours(c))
		return v_fail_null(EPERM, V_FORKED, "ibv_import_mr");
	m = calloc(1, sizeof(*m));
	if (!m)
		return v_fail_null(ENOMEM, V_MEMORY, "ibv_import_mr");
	host_lock(c->host);
	row = mr_find(host_hca(c->host), handle);
	why = why_no_region(row, handle, v_pd(pd));
	if (!why)
		*m = (struct v_mr){.base = {.context = pd->context,
					    .pd = pd,
					    .length = row->bytes,
					    .handle = handle,
					    .lkey = row->lkey,
					    .rkey = row->rkey},
				   .mr = row,
				   .is_imported = true};
	host_unlock(c->host);
	if (why) {
		free(m);
		return v_fail_number(ENOENT, "ibv_import_mr of handle", handle,
				     why);
	}
	count_up(&v_pd(pd)->imports);
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
