/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of later releases that are not built: see newer.h. */
#include "verbs/newer.h"

#include <errno.h>

#include "verbs/fail.h"

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
				struct ibv_dmah_init_attr *attr)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT,
			   "hints about where a device's writes land "
			   "(ibv_alloc_dmah)");
}

/* There is none. */
int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	return EOPNOTSUPP;
}

int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	return v_fail_errno(EOPNOTSUPP, V_NOT_BUILT,
			    "a dma-buf of device memory "
			    "(ibv_dm_export_dmabuf_fd)");
}
