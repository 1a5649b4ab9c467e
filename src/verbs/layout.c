/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layouts of structs that programs access, themselves or through inline
 * functions of the header with which they were built, on 64-bit machines.  This
 * file has no code: if the header or the compiler lays out a struct
 * differently, adverb does not build.  Sizes are those of release 44 of
 * rdma-core, except those of members and structs that later releases have
 * added.  meson.build finds out which of these the installed header has, and
 * this file compares them with newer.h.  A mutex has 40 bytes on x86-64 and 48
 * on arm64.
 */
#include <infiniband/sa.h>
#include <infiniband/verbs.h>

#include <pthread.h>
#include <stddef.h>

#include "hca/comp.h"
#include "verbs/newer.h"

#define MUTEX		  sizeof(pthread_mutex_t)
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define AT(type, field, bytes)                                                 \
	_Static_assert(offsetof(struct type, field) == (bytes),                \
		       #type "." #field)
/* Asserts the distance in bytes from a member of the verbs_context to its last
 * member, the ibv_context. */
#define BEFORE(field, bytes)                                                   \
	_Static_assert(                                                        \
		offsetof(struct verbs_context, context) -                      \
				offsetof(struct verbs_context, field) ==       \
			(bytes),                                               \
		"verbs_context." #field)

SIZE(ibv_device, 664);
AT(ibv_device, _ops, 0);
AT(ibv_device, node_type, 16);
AT(ibv_device, transport_type, 20);
AT(ibv_device, name, 24);
AT(ibv_device, dev_name, 88);
AT(ibv_device, dev_path, 152);
AT(ibv_device, ibdev_path, 408);

SIZE(ibv_context, 288 + MUTEX);
AT(ibv_context, device, 0);
AT(ibv_context, ops, 8);
AT(ibv_context, cmd_fd, 264);
AT(ibv_context, async_fd, 268);
AT(ibv_context, num_comp_vectors, 272);
AT(ibv_context, mutex, 280);
AT(ibv_context, abi_compat, 280 + MUTEX);

SIZE(ibv_context_ops, 256);
AT(ibv_context_ops, _compat_query_device, 0);
AT(ibv_context_ops, _compat_query_port, 8);
AT(ibv_context_ops, alloc_mw, 56);
AT(ibv_context_ops, bind_mw, 64);
AT(ibv_context_ops, dealloc_mw, 72);
AT(ibv_context_ops, poll_cq, 88);
AT(ibv_context_ops, req_notify_cq, 96);
AT(ibv_context_ops, post_srq_recv, 160);
AT(ibv_context_ops, post_send, 200);
AT(ibv_context_ops, post_recv, 208);

/* rdma-core adds new operations at the beginning of the struct, before those of
 * earlier releases. */
#define NEWER(field)                                                           \
	BEFORE(field, 320 + sizeof(struct v_newer_ops) -                       \
			      offsetof(struct v_newer_ops, field))
#if HAVE_VERBS_CONTEXT_ALLOC_BUF
SIZE(verbs_context, 656 + MUTEX);
NEWER(free_buf);
NEWER(alloc_buf);
#elif HAVE_VERBS_CONTEXT_DM_EXPORT_DMABUF_FD
SIZE(verbs_context, 640 + MUTEX);
#elif HAVE_VERBS_CONTEXT_ALLOC_DMAH
SIZE(verbs_context, 632 + MUTEX);
#else
SIZE(verbs_context, 608 + MUTEX);
#endif
#if HAVE_VERBS_CONTEXT_DM_EXPORT_DMABUF_FD
NEWER(dm_export_dmabuf_fd);
#endif
#if HAVE_VERBS_CONTEXT_ALLOC_DMAH
NEWER(reg_mr_ex);
NEWER(dealloc_dmah);
NEWER(alloc_dmah);
#endif
BEFORE(query_port, 320);
BEFORE(advise_mr, 312);
BEFORE(create_cq_ex, 120);
BEFORE(priv, 112);
BEFORE(query_device_ex, 104);
BEFORE(open_qp, 64);
BEFORE(create_qp_ex, 56);
BEFORE(get_srq_num, 48);
BEFORE(create_srq_ex, 40);
BEFORE(open_xrcd, 32);
BEFORE(close_xrcd, 24);
BEFORE(_ABI_placeholder3, 16);
BEFORE(sz, 8);
BEFORE(context, 0);
_Static_assert(sizeof(struct verbs_context) ==
		       offsetof(struct verbs_context, context) +
			       sizeof(struct ibv_context),
	       "context is the last member");

SIZE(ibv_pd, 16);
SIZE(ibv_ah, 24);
SIZE(ibv_mw, 32);
SIZE(ibv_xrcd, 8);
SIZE(ibv_td, 8);
SIZE(ibv_counters, 8);
SIZE(ibv_flow, 24);
SIZE(ibv_dm, 32);

SIZE(ibv_comp_channel, 16);
AT(ibv_comp_channel, context, 0);
AT(ibv_comp_channel, fd, 8);
AT(ibv_comp_channel, refcnt, 12);

SIZE(ibv_mr, 48);
AT(ibv_mr, context, 0);
AT(ibv_mr, pd, 8);
AT(ibv_mr, addr, 16);
AT(ibv_mr, length, 24);
AT(ibv_mr, handle, 32);
AT(ibv_mr, lkey, 36);
AT(ibv_mr, rkey, 40);

SIZE(ibv_srq, 88 + MUTEX);
AT(ibv_srq, context, 0);
AT(ibv_srq, srq_context, 8);
AT(ibv_srq, pd, 16);
AT(ibv_srq, handle, 24);
AT(ibv_srq, mutex, 32);
AT(ibv_srq, cond, 32 + MUTEX);
AT(ibv_srq, events_completed, 80 + MUTEX);

SIZE(ibv_qp, 120 + MUTEX);
AT(ibv_qp, context, 0);
AT(ibv_qp, qp_context, 8);
AT(ibv_qp, pd, 16);
AT(ibv_qp, send_cq, 24);
AT(ibv_qp, recv_cq, 32);
AT(ibv_qp, srq, 40);
AT(ibv_qp, handle, 48);
AT(ibv_qp, qp_num, 52);
AT(ibv_qp, state, 56);
AT(ibv_qp, qp_type, 60);
AT(ibv_qp, mutex, 64);
AT(ibv_qp, cond, 64 + MUTEX);
AT(ibv_qp, events_completed, 112 + MUTEX);

#if HAVE_IBV_QP_EX_WR_FLUSH
SIZE(ibv_qp_ex, sizeof(struct v_qp_ex));
AT(ibv_qp_ex, wr_flush, offsetof(struct v_qp_ex, wr_flush));
#else
SIZE(ibv_qp_ex, 312 + MUTEX);
#endif
SIZE(v_qp_ex, 320 + MUTEX);
AT(v_qp_ex, wr_flush, 312 + MUTEX);
AT(ibv_qp_ex, qp_base, 0);
AT(ibv_qp_ex, comp_mask, 120 + MUTEX);
AT(ibv_qp_ex, wr_id, 128 + MUTEX);
AT(ibv_qp_ex, wr_flags, 136 + MUTEX);
AT(ibv_qp_ex, wr_atomic_cmp_swp, 144 + MUTEX);
AT(ibv_qp_ex, wr_start, 280 + MUTEX);
AT(ibv_qp_ex, wr_complete, 288 + MUTEX);
AT(ibv_qp_ex, wr_abort, 296 + MUTEX);
AT(ibv_qp_ex, wr_atomic_write, 304 + MUTEX);

SIZE(ibv_cq, 88 + MUTEX);
AT(ibv_cq, context, 0);
AT(ibv_cq, channel, 8);
AT(ibv_cq, cq_context, 16);
AT(ibv_cq, handle, 24);
AT(ibv_cq, cqe, 28);
AT(ibv_cq, mutex, 32);
AT(ibv_cq, cond, 32 + MUTEX);
AT(ibv_cq, comp_events_completed, 80 + MUTEX);
AT(ibv_cq, async_events_completed, 84 + MUTEX);

SIZE(ibv_cq_ex, 248 + MUTEX);
AT(ibv_cq_ex, context, 0);
AT(ibv_cq_ex, channel, 8);
AT(ibv_cq_ex, cq_context, 16);
AT(ibv_cq_ex, handle, 24);
AT(ibv_cq_ex, cqe, 28);
AT(ibv_cq_ex, mutex, 32);
AT(ibv_cq_ex, cond, 32 + MUTEX);
AT(ibv_cq_ex, comp_events_completed, 80 + MUTEX);
AT(ibv_cq_ex, async_events_completed, 84 + MUTEX);
AT(ibv_cq_ex, comp_mask, 88 + MUTEX);
AT(ibv_cq_ex, status, 92 + MUTEX);
AT(ibv_cq_ex, wr_id, 96 + MUTEX);
AT(ibv_cq_ex, start_poll, 104 + MUTEX);
AT(ibv_cq_ex, next_poll, 112 + MUTEX);
AT(ibv_cq_ex, end_poll, 120 + MUTEX);
AT(ibv_cq_ex, read_opcode, 128 + MUTEX);
AT(ibv_cq_ex, read_completion_wallclock_ns, 240 + MUTEX);

SIZE(ibv_wq, 112 + MUTEX);
AT(ibv_wq, post_recv, 48);

SIZE(ibv_wc, 48);
SIZE(ibv_send_wr, 128);
SIZE(ibv_recv_wr, 32);
SIZE(ibv_sge, 16);
SIZE(ibv_grh, 40);
SIZE(ibv_ah_attr, 32);
SIZE(ibv_gid_entry, 32);
SIZE(ibv_async_event, 16);
SIZE(ibv_qp_attr, 144);
SIZE(ibv_qp_init_attr, 64);
SIZE(ibv_qp_init_attr_ex, 136);
SIZE(ibv_srq_init_attr_ex, 64);
SIZE(ibv_cq_init_attr_ex, 56);
SIZE(ibv_device_attr, 232);
SIZE(ibv_device_attr_ex, 400);
#if HAVE_IBV_PORT_ATTR_ACTIVE_SPEED_EX
SIZE(ibv_port_attr, sizeof(union v_port_attr));
AT(ibv_port_attr, active_speed_ex, 52);
#else
SIZE(ibv_port_attr, 52);
#endif
_Static_assert(sizeof(union v_port_attr) == 56 &&
		       offsetof(union v_port_attr, newest.active_speed_ex) ==
			       52,
	       "v_port_attr");
/* The end of _compat_ibv_port_attr, the struct of programs built before
 * 2019. */
AT(ibv_port_attr, port_cap_flags2, 48);
SIZE(ibv_sa_path_rec, 64);

/* Structs of releases after 44. */
SIZE(v_mr_init_attr, 72);
AT(v_mr_init_attr, buf, 64);
SIZE(v_comp_cntr_caps, 16);
SIZE(v_comp_cntr_base, 16);
SIZE(v_comp_cntr_init_attr, 12);
SIZE(v_qp_attach_comp_cntr_attr, 8);

/* These macros compare structs and numbers of newer.h with those of the
 * installed header. */
#define SAME_SIZE(name) SIZE(ibv_##name, sizeof(struct v_##name))
#define SAME_AT(name, field)                                                   \
	AT(ibv_##name, field, offsetof(struct v_##name, field))
#define SAME_NUMBER(theirs, ours)                                              \
	_Static_assert((unsigned int)(theirs) == (ours), #theirs)

#if HAVE_IBV_MR_INIT_ATTR_COMP_MASK
SAME_AT(mr_init_attr, length);
SAME_AT(mr_init_attr, access);
SAME_AT(mr_init_attr, comp_mask);
SAME_AT(mr_init_attr, iova);
SAME_AT(mr_init_attr, addr);
SAME_AT(mr_init_attr, fd);
SAME_AT(mr_init_attr, fd_offset);
SAME_AT(mr_init_attr, dmah);
SAME_NUMBER(IBV_REG_MR_MASK_IOVA, V_REG_MR_IOVA);
SAME_NUMBER(IBV_REG_MR_MASK_ADDR, V_REG_MR_ADDR);
SAME_NUMBER(IBV_REG_MR_MASK_FD, V_REG_MR_FD);
SAME_NUMBER(IBV_REG_MR_MASK_FD_OFFSET, V_REG_MR_FD_OFFSET);
SAME_NUMBER(IBV_REG_MR_MASK_DMAH, V_REG_MR_DMAH);
#endif
#if HAVE_IBV_MR_INIT_ATTR_BUF
SAME_SIZE(mr_init_attr);
SAME_AT(mr_init_attr, buf);
SAME_NUMBER(IBV_REG_MR_MASK_BUF, V_REG_MR_BUF);
SAME_NUMBER(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC,
	    V_PARENT_DOMAIN_UNPROTECTED);
#endif
#if HAVE_IBV_COMP_CNTR_HANDLE
SIZE(ibv_comp_cntr, sizeof(struct v_comp_cntr_base));
AT(ibv_comp_cntr, context, 0);
AT(ibv_comp_cntr, handle, 8);
SAME_SIZE(comp_cntr_caps);
SAME_AT(comp_cntr_caps, max_value);
SAME_AT(comp_cntr_caps, max_counters);
SAME_AT(comp_cntr_caps, supported_qp_attach_ops);
SAME_SIZE(comp_cntr_init_attr);
SAME_AT(comp_cntr_init_attr, type);
SAME_AT(comp_cntr_init_attr, flags);
SAME_SIZE(qp_attach_comp_cntr_attr);
SAME_AT(qp_attach_comp_cntr_attr, op_mask);
SAME_NUMBER(IBV_COMP_CNTR_TYPE_WRS, V_COMP_CNTR_WRS);
SAME_NUMBER(IBV_COMP_CNTR_TYPE_BYTES, V_COMP_CNTR_BYTES);
SAME_NUMBER(IBV_QP_ATTACH_COMP_CNTR_OP_SEND, 1u << COMP_SEND);
SAME_NUMBER(IBV_QP_ATTACH_COMP_CNTR_OP_RECV, 1u << COMP_RECV);
SAME_NUMBER(IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ, 1u << COMP_READ);
SAME_NUMBER(IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_READ,
	    1u << COMP_REMOTE_READ);
SAME_NUMBER(IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE, 1u << COMP_WRITE);
SAME_NUMBER(IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE,
	    1u << COMP_REMOTE_WRITE);
#endif
