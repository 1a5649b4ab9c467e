/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private version nodes of libibverbs.so.1.
 *
 * The libraries of drivers (providers: libmlx5 and others) import these
 * functions from libibverbs, and do not load without them.  A provider calls
 * the functions only for its own devices, of which adverb has none.  Each
 * function fails as if the kernel lacked the command, or does nothing, except
 * the two at the end of this file.
 *
 * A node is named after the release of rdma-core that last changed the node:
 * releases 34 to 56 have IBVERBS_PRIVATE_34, later releases have _57, _59, _64
 * or _65.  adverb exports each name in all of these nodes, except the
 * verbs_register_driver_*, each of which is in the node of its number.
 *
 * All functions but the last two have no parameters, although callers pass
 * arguments: no result depends on an argument, and a function may ignore its
 * arguments (System V AMD64 ABI, 3.2.3).
 */
#include "verbs/private.h"

#include <errno.h>
#include <stddef.h>

#include "verbs/names.h"
#include "verbs/ops.h"

/* clang-format off */
#define COMMANDS(x)							\
	x(execute_ioctl)						\
	x(ibv_cmd_advise_mr)			x(ibv_cmd_alloc_dm)	\
	x(ibv_cmd_alloc_dmah)						\
	x(ibv_cmd_alloc_mw)			x(ibv_cmd_alloc_pd)	\
	x(ibv_cmd_attach_mcast)			x(ibv_cmd_close_xrcd)	\
	x(ibv_cmd_create_ah)			x(ibv_cmd_create_comp_cntr) \
	x(ibv_cmd_create_counters)					\
	x(ibv_cmd_create_cq)			x(ibv_cmd_create_cq_ex)	\
	x(ibv_cmd_create_cq_ex2)		x(ibv_cmd_create_flow)	\
	x(ibv_cmd_create_flow_action_esp)	x(ibv_cmd_create_qp)	\
	x(ibv_cmd_create_qp_ex)			x(ibv_cmd_create_qp_ex2) \
	x(ibv_cmd_create_rwq_ind_table)		x(ibv_cmd_create_srq)	\
	x(ibv_cmd_create_srq_ex)		x(ibv_cmd_create_wq)	\
	x(ibv_cmd_dealloc_mw)			x(ibv_cmd_dealloc_pd)	\
	x(ibv_cmd_dereg_mr)			x(ibv_cmd_destroy_ah)	\
	x(ibv_cmd_destroy_comp_cntr)					\
	x(ibv_cmd_destroy_counters)		x(ibv_cmd_destroy_cq)	\
	x(ibv_cmd_destroy_flow)		x(ibv_cmd_destroy_flow_action)	\
	x(ibv_cmd_destroy_qp)		x(ibv_cmd_destroy_rwq_ind_table) \
	x(ibv_cmd_destroy_srq)			x(ibv_cmd_destroy_wq)	\
	x(ibv_cmd_detach_mcast)			x(ibv_cmd_free_dm)	\
	x(ibv_cmd_free_dmah)						\
	x(ibv_cmd_get_context)			x(ibv_cmd_inc_comp_cntr) \
	x(ibv_cmd_inc_err_comp_cntr)		x(ibv_cmd_modify_cq)	\
	x(ibv_cmd_modify_flow_action_esp)	x(ibv_cmd_modify_qp)	\
	x(ibv_cmd_modify_qp_ex)			x(ibv_cmd_modify_srq)	\
	x(ibv_cmd_modify_wq)			x(ibv_cmd_open_qp)	\
	x(ibv_cmd_open_xrcd)			x(ibv_cmd_poll_cq)	\
	x(ibv_cmd_post_recv)			x(ibv_cmd_post_send)	\
	x(ibv_cmd_post_srq_recv)	x(ibv_cmd_qp_attach_comp_cntr)	\
	x(ibv_cmd_query_comp_cntr_caps)		x(ibv_cmd_query_context) \
	x(ibv_cmd_query_device_any)		x(ibv_cmd_query_mr)	\
	x(ibv_cmd_query_port)			x(ibv_cmd_query_port_speed) \
	x(ibv_cmd_query_qp)			x(ibv_cmd_query_srq)	\
	x(ibv_cmd_read_comp_cntr)		x(ibv_cmd_read_counters) \
	x(ibv_cmd_read_err_comp_cntr)					\
	x(ibv_cmd_reg_dm_mr)			x(ibv_cmd_reg_dmabuf_mr) \
	x(ibv_cmd_reg_mr)			x(ibv_cmd_reg_mr_ex)	\
	x(ibv_cmd_req_notify_cq)					\
	x(ibv_cmd_rereg_mr)			x(ibv_cmd_resize_cq)	\
	x(ibv_cmd_set_comp_cntr)		x(ibv_cmd_set_err_comp_cntr)

#define MAKERS(x)							\
	x(_verbs_init_and_alloc_context)	x(ibv_dmabuf_heap_alloc) \
	x(ibv_dmabuf_heap_cc_shared_init)	x(verbs_open_device)

#define DESCRIPTORS(x)							\
	x(ibv_cmd_export_dmabuf_fd)	x(ibv_read_ibdev_sysfs_file)

#define NOTHINGS(x)							\
	x(__verbs_log)			x(ibv_dmabuf_heap_destroy)	\
	x(ibv_dmabuf_heap_free)		x(verbs_init_cq)		\
	x(verbs_set_ops)		x(verbs_uninit_context)
/* clang-format on */

#define BIND_IN(body, name, node) __asm__(".symver " #body "," #name node "\n");

/* Exports the function or variable `body` as `name` in every node. */
#define BIND(body, name)                                                       \
	BIND_IN(body, name, "@@IBVERBS_PRIVATE_34")                            \
	BIND_IN(body, name, "@IBVERBS_PRIVATE_57")                             \
	BIND_IN(body, name, "@IBVERBS_PRIVATE_59")                             \
	BIND_IN(body, name, "@IBVERBS_PRIVATE_64")                             \
	BIND_IN(body, name, "@IBVERBS_PRIVATE_65")

int private_command(void)
{
	return EOPNOTSUPP;
}

void *private_maker(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

int private_descriptor(void)
{
	errno = EOPNOTSUPP;
	return -1;
}

void private_nothing(void)
{
}

unsigned int private_zero(void)
{
	return 0;
}

#define COMMAND(name)	 BIND(private_command, name)
#define MAKER(name)	 BIND(private_maker, name)
#define DESCRIPTOR(name) BIND(private_descriptor, name)
#define NOTHING(name)	 BIND(private_nothing, name)

COMMANDS(COMMAND)
MAKERS(MAKER)
DESCRIPTORS(DESCRIPTOR)
NOTHINGS(NOTHING)
BIND(private_zero, __ioctl_final_num_attrs)

/* A provider's constructor calls the function whose name has the number of the
 * provider's node. */
BIND_IN(private_nothing, verbs_register_driver_34, "@@IBVERBS_PRIVATE_34")
BIND_IN(private_nothing, verbs_register_driver_57, "@@IBVERBS_PRIVATE_57")
BIND_IN(private_nothing, verbs_register_driver_59, "@@IBVERBS_PRIVATE_59")
BIND_IN(private_nothing, verbs_register_driver_64, "@@IBVERBS_PRIVATE_64")
BIND_IN(private_nothing, verbs_register_driver_65, "@@IBVERBS_PRIVATE_65")

/* A variable that providers read: may the destruction of an object succeed
 * although the device is gone? */
bool private_disassociate_destroy;
BIND(private_disassociate_destroy, verbs_allow_disassociate_destroy)

/* Not only providers but also programs call the two functions below, so these
 * functions give true answers. */
int private_gid_type(struct ibv_context *context, uint8_t port,
		     unsigned int index, unsigned int *type)
{
	return v_query_gid_type(context, port, index, type);
}
BIND(private_gid_type, ibv_query_gid_type)

const char *private_opcode_str(enum ibv_wr_opcode opcode)
{
	return v_wr_opcode_str(opcode);
}
BIND(private_opcode_str, ibv_wr_opcode_str)
