/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions in the operation tables of a context, and functions that files of
 * this folder share.  Inline functions of the public header call the functions
 * in the tables.  A function v_NAME without a comment has the parameters and
 * results that the manual page of ibv_NAME documents.
 */
#ifndef VERBS_OPS_H
#define VERBS_OPS_H

#include <infiniband/verbs.h>

#include "engine/engine.h"
#include "host/host.h"

/* ---- exported by node IBVERBS_1.0, but declared in no public header ---- */

/* Returns the folder that has class/infiniband, such as "/sys": a static
 * string. */
const char *ibv_get_sysfs_path(void);
/* Reads the file dir/file into buf, without the final line feed and with a
 * terminating 0.  Returns the length of the text without the 0, or -1 if the
 * file cannot be read or the text does not fit into `size` bytes. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

/* ---- exported by node IBVERBS_1.1, but declared in no public header ---- */

/* Does nothing, and returns 0: adverb pins no pages. */
int ibv_dontfork_range(void *base, size_t size);
/* Does nothing, and returns 0: adverb pins no pages. */
int ibv_dofork_range(void *base, size_t size);

/* ---- in the operation tables, or shared by files of this folder ---- */

int v_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int v_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int v_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		struct ibv_send_wr **bad);
int v_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad);
/* context.c: opens a device with cmd_fd as the context's descriptor, which the
 * context then owns.  On failure returns NULL and errno, and the caller still
 * owns cmd_fd. */
struct ibv_context *v_open_device(struct ibv_device *device, int cmd_fd);
/* context.c: returns the device of the open context whose cmd_fd is the same
 * file as fd, because fd is that cmd_fd or a duplicate of it; NULL if this
 * process has no such context. */
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
/* wr.c: checks send_ops_flags.  Returns 0, or EOPNOTSUPP with a message if
 * queue pairs of this type lack one of the operations. */
int v_wr_check(enum ibv_qp_type type, uint64_t send_ops);
/* wr.c: fills in the members of *qp that the inline functions ibv_wr_* call. */
void v_wr_fill(struct ibv_qp_ex *qp);
int v_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
/* cq_ex.c: fills in the functions of extended polling. */
void v_cq_fill(struct ibv_cq_ex *cq);
/* Has the parameters and results of ibv_query_rt_values_ex. */
int v_query_rt_values(struct ibv_context *context,
		      struct ibv_values_ex *values);
int v_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad);
struct ibv_srq *v_create_srq_ex(struct ibv_context *context,
				struct ibv_srq_init_attr_ex *attr);
int v_get_srq_num(struct ibv_srq *srq, uint32_t *num);
struct ibv_qp *v_create_qp_ex(struct ibv_context *context,
			      struct ibv_qp_init_attr_ex *attr);
/* Has the results of ibv_query_device_ex.  `size`: the bytes at attr; if they
 * are fewer than a struct ibv_device_attr has, returns EINVAL. */
int v_query_device_ex(struct ibv_context *context,
		      const struct ibv_query_device_ex_input *input,
		      struct ibv_device_attr_ex *attr, size_t size);
/* Fills in the `size` bytes at attr.  Bytes beyond the struct of release 65 of
 * rdma-core become 0.  Returns 0, or EINVAL with a message if there is no such
 * port. */
int v_query_port(struct ibv_context *context, uint8_t port,
		 struct ibv_port_attr *attr, size_t size);
/* Does the work of ibv_query_gid_type, which only the private nodes export.
 * Stores 1 in *type for RoCE v2, else 0.  Returns 0, or -1 and errno with a
 * message. */
int v_query_gid_type(struct ibv_context *context, uint8_t port,
		     unsigned int index, unsigned int *type);
/* Fills in the 48 bytes of the oldest layout of struct ibv_port_attr, and no
 * byte more.  Returns 0, or EINVAL with a message if there is no such port. */
int v_query_port_compat(struct ibv_context *context, uint8_t port,
			struct _compat_ibv_port_attr *attr);

/* event.c: the function host_sink.event, which host calls under the progress
 * lock.  Queues the event for the program. */
void v_event(const struct engine_event *e);
/* context.c: the function host_sink.port, which host calls without a lock.
 * Queues the event of port `number` at each open context that this process has
 * of the device.  Ports count from 1. */
void v_port_event(const struct device *dev, uint32_t number,
		  enum device_event what);
/* context.c: the function host_sink.fatal, which host calls under the progress
 * lock.  Queues IBV_EVENT_DEVICE_FATAL at each open context of this process. */
void v_fatal_event(void);

#endif
