/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libefa.so.1 in which every function fails.  Programs link this library, but
 * no adverb device is of the library's vendor.  So each call fails with the
 * error that the real library returns for another vendor's device.  Functions
 * in which the real library does not look at the vendor, for example
 * efadv_cq_from_ibv_cq_ex, fail too.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(efadv_create_driver_qp, "@@EFA_1.0")
STUB_NULL(efadv_create_qp_ex, "@@EFA_1.1")
STUB_ERRNO(efadv_query_ah, "@@EFA_1.1")
STUB_ERRNO(efadv_query_device, "@@EFA_1.1")
STUB_NULL(efadv_cq_from_ibv_cq_ex, "@@EFA_1.2")
STUB_NULL(efadv_create_cq, "@@EFA_1.2")
STUB_ERRNO(efadv_query_mr, "@@EFA_1.3")
STUB_ERRNO(efadv_query_cq, "@@EFA_1.4")
STUB_ERRNO(efadv_query_qp_wqs, "@@EFA_1.4")
STUB_NEGATIVE(efadv_get_max_rq_depth, "@@EFA_1.5")
STUB_NEGATIVE(efadv_get_max_sq_depth, "@@EFA_1.5")
STUB_NULL(efadv_qp_from_ibv_qp_ex, "@@EFA_1.6")
STUB_NULL(efadv_create_comp_cntr, "@@EFA_1.7")
/* clang-format on */
