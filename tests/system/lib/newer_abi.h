/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * newer_abi: the part of the ABI of rdma-core 65 that the installed headers may
 * lack.  The structures have the layout of that release.  newer_find looks up
 * the calls of the version nodes IBVERBS_1.15 to 1.18, by name and node, in the
 * libibverbs that the program runs with.
 */
#ifndef TESTS_SYSTEM_LIB_NEWER_ABI_H
#define TESTS_SYSTEM_LIB_NEWER_ABI_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct newer_buf;

enum {
	NEWER_REG_MR_IOVA = 1 << 0,
	NEWER_REG_MR_ADDR = 1 << 1,
	NEWER_REG_MR_FD = 1 << 2,
	NEWER_REG_MR_FD_OFFSET = 1 << 3,
	NEWER_REG_MR_DMAH = 1 << 4,
	NEWER_REG_MR_BUF = 1 << 5,
	NEWER_PARENT_DOMAIN_UNPROTECTED = 1 << 2,
};

/* The argument of ibv_reg_mr_ex; comp_mask names the members that are set. */
struct newer_mr_attr {
	size_t length;
	int access;
	uint64_t comp_mask; /* NEWER_REG_MR_* */
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct newer_buf *buf;
};

/* The argument of ibv_alloc_dmah. */
struct newer_dmah_attr {
	uint32_t comp_mask;
	uint32_t cpu_id;
	uint8_t ph, tph_mem_type;
};

/* Types of a completion counter. */
enum { NEWER_WRS, NEWER_BYTES };

/* Operations that a completion counter counts, for op_mask. */
enum {
	NEWER_SEND = 1 << 0,
	NEWER_RECV = 1 << 1,
	NEWER_READ = 1 << 2,
	NEWER_REMOTE_READ = 1 << 3,
	NEWER_WRITE = 1 << 4,
	NEWER_REMOTE_WRITE = 1 << 5,
};

/* A completion counter. */
struct newer_counter {
	struct ibv_context *context;
	uint32_t handle;
};

/* The limits of the completion counters of a device. */
struct newer_counter_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops; /* NEWER_SEND ... */
};

/* The argument of ibv_create_comp_cntr. */
struct newer_counter_attr {
	uint32_t comp_mask, type, flags; /* type: NEWER_WRS or NEWER_BYTES */
};

/* The argument of ibv_qp_attach_comp_cntr. */
struct newer_attach_attr {
	uint32_t comp_mask, op_mask; /* op_mask: NEWER_SEND ... */
};

/* The members that precede query_port in a verbs_context of release 65. */
struct newer_ops {
	void (*free_buf)(struct newer_buf *buf);
	void *(*alloc_buf)(struct ibv_pd *pd, size_t size,
			   struct newer_buf **buf);
	int (*dm_export_dmabuf_fd)(struct ibv_dm *dm);
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd,
				    struct newer_mr_attr *attr);
	int (*dealloc_dmah)(void *dmah);
	void *(*alloc_dmah)(struct ibv_context *ctx,
			    struct newer_dmah_attr *attr);
};

/* An ibv_qp_ex of release 65. */
struct newer_qp_ex {
	_Alignas(8) char before[312 + sizeof(pthread_mutex_t)];
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va,
			 size_t length, uint8_t type, uint8_t level);
};

/* Pointers to the calls, by their names without ibv_ or _ibv_. */
struct later {
	void *(*alloc_dmah)(struct ibv_context *ctx,
			    struct newer_dmah_attr *attr);
	int (*dealloc_dmah)(void *dmah);
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd,
				    struct newer_mr_attr *attr);
	int (*dm_export_dmabuf_fd)(struct ibv_dm *dm);
	int (*query_port_speed)(struct ibv_context *ctx, uint32_t port,
				uint64_t *speed);
	void *(*alloc_buf)(struct ibv_pd *pd, size_t size,
			   struct newer_buf **buf);
	void (*free_buf)(struct newer_buf *buf);
	struct ibv_mr *(*reg_buf_mr)(struct ibv_pd *pd, struct newer_buf *buf,
				     void *addr, size_t length, int access);
	int (*export_buf_dmabuf_fd)(struct newer_buf *buf);
	int (*query_comp_cntr_caps)(struct ibv_context *ctx,
				    struct newer_counter_caps *caps,
				    size_t size);
	struct newer_counter *(*create_comp_cntr)(
		struct ibv_context *ctx, struct newer_counter_attr *attr);
	int (*destroy_comp_cntr)(struct newer_counter *c);
	int (*set_comp_cntr)(struct newer_counter *c, uint64_t value);
	int (*set_err_comp_cntr)(struct newer_counter *c, uint64_t value);
	int (*inc_comp_cntr)(struct newer_counter *c, uint64_t amount);
	int (*inc_err_comp_cntr)(struct newer_counter *c, uint64_t amount);
	int (*read_comp_cntr)(struct newer_counter *c, uint64_t *value);
	int (*read_err_comp_cntr)(struct newer_counter *c, uint64_t *value);
	int (*qp_attach_comp_cntr)(struct ibv_qp *qp, struct newer_counter *c,
				   struct newer_attach_attr *attr);
};

/* The calls of the libibverbs that the program runs with, after newer_find. */
extern struct later later;
/* Looks up all calls and stores them in `later`.  If a call is missing, prints
 * a message on stdout and exits with status 1. */
void newer_find(void);

#endif
