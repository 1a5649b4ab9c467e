/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a context's tables of operations point to, as inline functions of the
 * public header call them.  Conventions are those of the verb of the name.
 */
#ifndef VERBS_OPS_H
#define VERBS_OPS_H

#include <infiniband/verbs.h>

#include "engine/engine.h"
#include "host/host.h"

/* Behind ibv_read_sysfs_file and the private node: not in the header. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

/* Exported, in no public header. */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

int v_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int v_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int v_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		struct ibv_send_wr **bad);
int v_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad);
/* Open with a descriptor, which the context then owns; NULL and errno. */
struct ibv_context *v_open_device(struct ibv_device *device, int cmd_fd);
/* The device of the context that fd is a duplicate of, or NULL. */
struct ibv_device *v_device_of_fd(int fd);
struct ibv_td *v_alloc_td(struct ibv_context *context,
			  struct ibv_td_init_attr *attr);
int v_dealloc_td(struct ibv_td *td);
struct ibv_pd *v_alloc_parent_domain(struct ibv_context *context,
				     struct ibv_parent_domain_init_attr *attr);
struct ibv_dm *v_alloc_dm(struct ibv_context *context,
			  struct ibv_alloc_dm_attr *attr);
int v_free_dm(struct ibv_dm *dm);
struct ibv_mr *v_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			   uint64_t offset, size_t length, unsigned int access);
struct ibv_mw *v_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int v_dealloc_mw(struct ibv_mw *mw);
int v_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_cq_ex *v_create_cq_ex(struct ibv_context *context,
				 struct ibv_cq_init_attr_ex *attr);
/* wr.c: posting field by field.  EOPNOTSUPP, said, for operations that the
 * type of queue pair does not have. */
int v_wr_check(enum ibv_qp_type type, uint64_t send_ops);
void v_wr_fill(struct ibv_qp_ex *qp);
int v_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* cq_ex.c: the functions of extended polling. */
void v_cq_fill(struct ibv_cq_ex *cq);
int v_query_rt_values(struct ibv_context *context,
		      struct ibv_values_ex *values);
int v_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad);
struct ibv_srq *v_create_srq_ex(struct ibv_context *context,
				struct ibv_srq_init_attr_ex *attr);
int v_get_srq_num(struct ibv_srq *srq, uint32_t *num);
struct ibv_qp *v_create_qp_ex(struct ibv_context *context,
			      struct ibv_qp_init_attr_ex *attr);
int v_query_device_ex(struct ibv_context *context,
		      const struct ibv_query_device_ex_input *input,
		      struct ibv_device_attr_ex *attr, size_t size);
/* Writes as much as release 65 has of @size, and zeroes what is more. */
int v_query_port(struct ibv_context *context, uint8_t port,
		 struct ibv_port_attr *attr, size_t size);
/* The private nodes' ibv_query_gid_type: RoCE v2 is 1, all else 0. */
int v_query_gid_type(struct ibv_context *context, uint8_t port,
		     unsigned int index, unsigned int *type);
/* Exactly the 48 bytes of the oldest layout. */
int v_query_port_compat(struct ibv_context *context, uint8_t port,
			struct _compat_ibv_port_attr *attr);

/* event.c: what host calls under the progress lock. */
void v_event(const struct engine_event *e);
/* context.c: the same for what happens to a port, without a lock. */
void v_port_event(const struct device *dev, enum device_event what);
void v_fatal_event(void);

#endif
