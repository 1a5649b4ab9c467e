/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies between the structs of the kernel's user ABI (<rdma/...>) and those of
 * verbs: functions of the nodes IBVERBS_1.0 and IBVERBS_1.1 that rdma-core's
 * librdmacm calls.  They cannot fail.  No state, no lock; pointers are not
 * checked.
 */
#ifndef VERBS_KERN_H
#define VERBS_KERN_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/* Copies all attributes of an address vector. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst,
				struct ib_uverbs_ah_attr *src);
/* Copies all attributes of a queue pair, valid or not: the caller has the mask
 * of the valid attributes. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst,
				struct ib_uverbs_qp_attr *src);
/* Copies a path record. */
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
				 struct ib_user_path_rec *src);
/* Copies a path record to the kernel's layout. */
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst,
			       struct ibv_sa_path_rec *src);

#endif
