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

int _ibv_query_comp_cntr_caps(struct ibv_context *context,
			      struct ibv_comp_cntr_caps *caps, size_t caps_size)
{
	return EOPNOTSUPP;
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   struct ibv_comp_cntr_init_attr *attr)
{
	return v_fail_null(EOPNOTSUPP, V_NOT_BUILT,
			   "completion counters (ibv_create_comp_cntr)");
}

int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter)
{
	return EOPNOTSUPP;
}

int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	return EOPNOTSUPP;
}

int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value)
{
	return EOPNOTSUPP;
}

int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return EOPNOTSUPP;
}

int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount)
{
	return EOPNOTSUPP;
}

int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	return EOPNOTSUPP;
}

int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value)
{
	return EOPNOTSUPP;
}

int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter,
			    struct ibv_qp_attach_comp_cntr_attr *attr)
{
	return EOPNOTSUPP;
}
