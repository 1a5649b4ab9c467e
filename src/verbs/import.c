/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of another process, or of another device's memory: not built. */
#include <errno.h>

#include "verbs/fail.h"
#include "verbs/object.h"

struct ibv_context *ibv_import_device(int cmd_fd)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT, "importing a device");
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT, "importing a domain");
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT, "importing a region");
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT, "importing device memory");
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
}

/* Programs try this first and go on without. */
struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	errno = EOPNOTSUPP;
	return NULL;
}
