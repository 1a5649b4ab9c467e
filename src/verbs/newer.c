/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of newer.h that always fail, because adverb does not have their
 * features. */
#include "verbs/newer.h"

#include <errno.h>

#include "verbs/fail.h"

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
				struct ibv_dmah_init_attr *attr)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_SUPPORTED,
			   "hints about which cache a device writes to "
			   "(ibv_alloc_dmah)");
}

/* No program has a DMA handle: ibv_alloc_dmah returns NULL. */
int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	return EOPNOTSUPP;
}

int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	return v_fail_errno(EOPNOTSUPP, V_NOT_SUPPORTED,
			    "a dma-buf of device memory "
			    "(ibv_dm_export_dmabuf_fd)");
}
