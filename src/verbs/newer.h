/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations of rdma-core up to release 65 that the installed header may
 * lack: calls of the nodes IBVERBS_1.15 to IBVERBS_1.18 with their structures,
 * and the fields by which older structures have grown.  Here the structures
 * have names of adverb's own (v_NAME for ibv_NAME), so that this header can be
 * included together with the header of any release.  layout.c compares the
 * structures with those of the installed header.
 */
#ifndef VERBS_NEWER_H
#define VERBS_NEWER_H

#include <infiniband/verbs.h>

#include <pthread.h>
#include <stdint.h>

struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

/* ---- structures that have grown ---- */

/* The members of verbs_context before query_port.  New members are added at the
 * beginning, so that older ones keep their distance from the ibv_context. */
struct v_newer_ops {
	void (*free_buf)(struct ibv_buf *buf);
	void *(*alloc_buf)(struct ibv_pd *pd, size_t size,
			   struct ibv_buf **buf);
	int (*dm_export_dmabuf_fd)(struct ibv_dm *dm);
	struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *pd,
				    struct ibv_mr_init_attr *attr);
	int (*dealloc_dmah)(struct ibv_dmah *dmah);
	struct ibv_dmah *(*alloc_dmah)(struct ibv_context *context,
				       struct ibv_dmah_init_attr *attr);
};

/* ibv_qp_ex of release 65, whose last member is wr_flush.  In release 44 the
 * last member is wr_atomic_write. */
struct v_qp_ex {
	_Alignas(8) char before[312 + sizeof(pthread_mutex_t)];
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va,
			 size_t length, uint8_t type, uint8_t level);
};

/* ibv_port_attr.  `newest` names the member that older headers lack. */
union v_port_attr {
	struct ibv_port_attr base;
	struct {
		_Alignas(4) char before[52];
		uint32_t active_speed_ex; /* active_speed, with 32 bits */
	} newest;
};

/* A bit of ibv_parent_domain_init_attr.comp_mask: buffers may lie in memory
 * that a confidential virtual machine shares with devices. */
#define V_PARENT_DOMAIN_UNPROTECTED (1u << 2)

/* ---- 1.15: registration by attributes; cache hints (DMA handles) ---- */

/* Bits of v_mr_init_attr.comp_mask: the fields that are valid. */
enum {
	V_REG_MR_IOVA = 1 << 0,
	V_REG_MR_ADDR = 1 << 1,
	V_REG_MR_FD = 1 << 2,
	V_REG_MR_FD_OFFSET = 1 << 3,
	V_REG_MR_DMAH = 1 << 4,
	V_REG_MR_BUF = 1 << 5,
};

/* ibv_mr_init_attr.  length, access and comp_mask are always valid; adverb
 * reads another field only if comp_mask names the field. */
struct v_mr_init_attr {
	size_t length;	       /* bytes */
	int access;	       /* IBV_ACCESS_* */
	uint64_t comp_mask;    /* V_REG_MR_* */
	uint64_t iova;	       /* the address by which peers name byte 0 */
	void *addr;	       /* where the memory begins */
	int fd;		       /* a dma-buf; not supported */
	uint64_t fd_offset;    /* bytes into the dma-buf; not supported */
	struct ibv_dmah *dmah; /* a cache hint; not supported */
	struct ibv_buf *buf;   /* the buffer that contains the memory */
};

/* Registers memory as attr says.  Returns the region, which ibv_dereg_mr frees,
 * or NULL and errno with a message.  EOPNOTSUPP: attr names an unknown
 * attribute, a dma-buf or a DMA handle.  EINVAL: attr names both a buffer and a
 * dma-buf; attr has no address; the buffer does not contain the memory; or the
 * buffer belongs to another domain.  Else an errno of ibv_reg_mr. */
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *attr);
/* Returns NULL and EOPNOTSUPP, with a message. */
struct ibv_dmah *ibv_alloc_dmah(struct ibv_context *context,
				struct ibv_dmah_init_attr *attr);
/* Returns EOPNOTSUPP, without a message. */
int ibv_dealloc_dmah(struct ibv_dmah *dmah);

/* ---- 1.16: dma-bufs of device memory; the speed of a port ---- */

/* Returns -1 and EOPNOTSUPP, with a message. */
int ibv_dm_export_dmabuf_fd(struct ibv_dm *dm);
/* Stores the port's speed in units of 100 Mb/s.  Returns 0, or EINVAL with a
 * message if there is no such port. */
int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
			 uint64_t *port_speed);

/* ---- 1.17: buffers that the library allocates ---- */

/* Allocates a page-aligned buffer of `size` bytes on the heap.  Returns the
 * buffer's address, and stores a handle in *buf, by which ibv_free_buf frees
 * the buffer; or returns NULL and errno ENOMEM with a message. */
void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
/* Frees a buffer and its handle. */
void ibv_free_buf(struct ibv_buf *buf);
/* Registers the `length` bytes of a buffer that begin at addr.  pd must be the
 * domain for which the buffer was allocated.  Returns the region, which
 * ibv_dereg_mr frees, or NULL and errno with a message: EINVAL if pd is another
 * domain or the bytes are not inside the buffer; else an errno of
 * ibv_reg_mr. */
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf,
			      void *addr, size_t length, int access);

/* ---- 1.18: dma-bufs of buffers; completion counters ---- */

/* Returns -1 and ENODATA, with a message. */
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);

/* ibv_comp_cntr_caps */
struct v_comp_cntr_caps {
	uint64_t max_value;    /* the highest value of a counter */
	uint32_t max_counters; /* how many counters a process may have */
	/* bit 1 << OP for each OP of enum comp_op (hca/comp.h) except
	 * COMP_REMOTE_READ, which is not counted */
	uint32_t supported_qp_attach_ops;
};

/* ibv_comp_cntr, to which programs have pointers. */
struct v_comp_cntr_base {
	struct ibv_context *context; /* in which the counter was created */
	uint32_t handle; /* differs between all counters of a process */
};

/* The unit of a counter: requests, or their bytes. */
enum { V_COMP_CNTR_WRS, V_COMP_CNTR_BYTES };

/* ibv_comp_cntr_init_attr */
struct v_comp_cntr_init_attr {
	uint32_t comp_mask; /* must be 0 */
	uint32_t type;	    /* V_COMP_CNTR_* */
	uint32_t flags;	    /* must be 0 */
};

/* ibv_qp_attach_comp_cntr_attr */
struct v_qp_attach_comp_cntr_attr {
	uint32_t comp_mask; /* must be 0 */
	uint32_t op_mask;   /* bit 1 << OP for each OP of enum comp_op */
};

/* Stores the limits of completion counters in the caps_size bytes at caps;
 * bytes beyond struct v_comp_cntr_caps become 0.  Returns 0. */
int _ibv_query_comp_cntr_caps(struct ibv_context *context,
			      struct ibv_comp_cntr_caps *caps,
			      size_t caps_size);
/* Creates a counter with the value 0, which ibv_destroy_comp_cntr frees.
 * Returns NULL and errno with a message on failure: EPERM in a forked child;
 * EINVAL if comp_mask or flags is not 0; EOPNOTSUPP if the type is unknown;
 * ENOMEM if no memory is left or the process has max_counters counters. */
struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context,
		     struct ibv_comp_cntr_init_attr *attr);
/* Frees a counter.  Returns 0, or a positive errno with a message.  EPERM: in a
 * forked child.  EBUSY: the counter is attached to queue pairs. */
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *counter);
/* Sets the number of completed requests or bytes.  Returns 0, or EPERM with a
 * message in a forked child. */
int ibv_set_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);
/* Sets the number of failed requests.  Returns 0, or EPERM with a message in a
 * forked child. */
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t value);
/* Adds to the number of completed requests or bytes.  Returns 0, or EPERM with
 * a message in a forked child. */
int ibv_inc_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
/* Adds to the number of failed requests.  Returns 0, or EPERM with a message in
 * a forked child. */
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t amount);
/* Stores the number of completed requests or bytes, and makes progress as a
 * poll does.  Returns 0, or EPERM with a message in a forked child. */
int ibv_read_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
/* Stores the number of failed requests, and makes progress as a poll does.
 * Returns 0, or EPERM with a message in a forked child. */
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *counter, uint64_t *value);
/* Attaches a counter to the operations attr->op_mask of a queue pair in RESET
 * or INIT, until the queue pair is destroyed.  Returns 0, or a positive errno
 * with a message.  EPERM: in a forked child.  EINVAL: the contexts differ,
 * comp_mask is not 0, op_mask is 0, or the queue pair is in another state.
 * EOPNOTSUPP: op_mask has an operation that is not counted.  EBUSY: one of the
 * operations has a counter already.  ENOMEM. */
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *counter,
			    struct ibv_qp_attach_comp_cntr_attr *attr);

#endif
