/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls newer than the release we follow: see newer.h. */
#include "verbs/newer.h"

#include <errno.h>

static void *none(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

static int no_fd(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
				struct ibv_dmah_init_attr *attr)
{
	return none();
}

int ibv_dealloc_dmah(struct ibv_dmah *dmah)
{
	return EOPNOTSUPP;
}

struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr)
{
	return none();
}

int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm)
{
	return no_fd();
}

int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
			 uint64_t *port_speed)
{
	return EOPNOTSUPP;
}

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	return none();
}

void ibv_free_buf(struct ibv_buf *buf)
{
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
			      void *addr, size_t length, int access)
{
	return none();
}

int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	return no_fd();
}

int _ibv_query_comp_cntr_caps(struct ibv_context *context,
			      struct ibv_comp_cntr_caps *caps, size_t caps_size)
{
	return EOPNOTSUPP;
}

struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   struct ibv_comp_cntr_init_attr *attr)
{
	return none();
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
