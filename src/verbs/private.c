/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private node of libibverbs.so.1.
 *
 * Real providers (libmlx5 and its kin) import these from libibverbs and call
 * them only for a device that they drive; none of ours is.  The names must
 * exist or such a library does not load, and each answers as a kernel without
 * the command would.  Providers built against later releases ask for the same
 * names in the nodes IBVERBS_PRIVATE_57 to _65.
 *
 * An argument list is left out: the callers pass theirs in registers and the
 * answer depends on none of them (System V AMD64 ABI, 3.2.3).
 */
#include "verbs/private.h"

#include <errno.h>
#include <stddef.h>

/* clang-format off */
#define COMMANDS(x)							\
	x(execute_ioctl)						\
	x(ibv_cmd_advise_mr)			x(ibv_cmd_alloc_dm)	\
	x(ibv_cmd_alloc_mw)			x(ibv_cmd_alloc_pd)	\
	x(ibv_cmd_attach_mcast)			x(ibv_cmd_close_xrcd)	\
	x(ibv_cmd_create_ah)			x(ibv_cmd_create_counters) \
	x(ibv_cmd_create_cq)			x(ibv_cmd_create_cq_ex)	\
	x(ibv_cmd_create_cq_ex2)		x(ibv_cmd_create_flow)	\
	x(ibv_cmd_create_flow_action_esp)	x(ibv_cmd_create_qp)	\
	x(ibv_cmd_create_qp_ex)			x(ibv_cmd_create_qp_ex2) \
	x(ibv_cmd_create_rwq_ind_table)		x(ibv_cmd_create_srq)	\
	x(ibv_cmd_create_srq_ex)		x(ibv_cmd_create_wq)	\
	x(ibv_cmd_dealloc_mw)			x(ibv_cmd_dealloc_pd)	\
	x(ibv_cmd_dereg_mr)			x(ibv_cmd_destroy_ah)	\
	x(ibv_cmd_destroy_counters)		x(ibv_cmd_destroy_cq)	\
	x(ibv_cmd_destroy_flow)		x(ibv_cmd_destroy_flow_action)	\
	x(ibv_cmd_destroy_qp)		x(ibv_cmd_destroy_rwq_ind_table) \
	x(ibv_cmd_destroy_srq)			x(ibv_cmd_destroy_wq)	\
	x(ibv_cmd_detach_mcast)			x(ibv_cmd_free_dm)	\
	x(ibv_cmd_get_context)			x(ibv_cmd_modify_cq)	\
	x(ibv_cmd_modify_flow_action_esp)	x(ibv_cmd_modify_qp)	\
	x(ibv_cmd_modify_qp_ex)			x(ibv_cmd_modify_srq)	\
	x(ibv_cmd_modify_wq)			x(ibv_cmd_open_qp)	\
	x(ibv_cmd_open_xrcd)			x(ibv_cmd_poll_cq)	\
	x(ibv_cmd_post_recv)			x(ibv_cmd_post_send)	\
	x(ibv_cmd_post_srq_recv)		x(ibv_cmd_query_context) \
	x(ibv_cmd_query_device_any)		x(ibv_cmd_query_mr)	\
	x(ibv_cmd_query_port)			x(ibv_cmd_query_qp)	\
	x(ibv_cmd_query_srq)			x(ibv_cmd_read_counters) \
	x(ibv_cmd_reg_dm_mr)			x(ibv_cmd_reg_dmabuf_mr) \
	x(ibv_cmd_reg_mr)			x(ibv_cmd_req_notify_cq) \
	x(ibv_cmd_rereg_mr)			x(ibv_cmd_resize_cq)

#define MAKERS(x)							\
	x(_verbs_init_and_alloc_context)	x(verbs_open_device)

#define NOTHINGS(x)							\
	x(__verbs_log)			x(verbs_init_cq)		\
	x(verbs_register_driver_34)	x(verbs_set_ops)		\
	x(verbs_uninit_context)
/* clang-format on */

/* One body answers for all the names of a row. */
#define BIND(body, name)                                                       \
	__asm__(".symver " #body "," #name "@@IBVERBS_PRIVATE_34\n"            \
		".symver " #body "," #name "@IBVERBS_PRIVATE_57\n"             \
		".symver " #body "," #name "@IBVERBS_PRIVATE_59\n"             \
		".symver " #body "," #name "@IBVERBS_PRIVATE_64\n"             \
		".symver " #body "," #name "@IBVERBS_PRIVATE_65");

int private_command(void)
{
	return EOPNOTSUPP;
}

void *private_maker(void)
{
	errno = EOPNOTSUPP;
	return NULL;
}

void private_nothing(void)
{
}

#define COMMAND(name) BIND(private_command, name)
#define MAKER(name)   BIND(private_maker, name)
#define NOTHING(name) BIND(private_nothing, name)

COMMANDS(COMMAND)
MAKERS(MAKER)
NOTHINGS(NOTHING)

/* A provider reads this to learn if a lost device is reported as success. */
bool verbs_allow_disassociate_destroy;

unsigned int __ioctl_final_num_attrs(void)
{
	return 0;
}

int ibv_read_ibdev_sysfs_file(void)
{
	errno = EOPNOTSUPP;
	return -1;
}
