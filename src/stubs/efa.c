/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libefa.so.1, inert.  Programs link it; none of our devices is one of its
 * kind, so every call answers as the real library does for a foreign device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(efadv_create_driver_qp, "@@EFA_1.0")
STUB_NULL(efadv_create_qp_ex, "@@EFA_1.1")
STUB_ERRNO(efadv_query_ah, "@@EFA_1.1")
STUB_ERRNO(efadv_query_device, "@@EFA_1.1")
STUB_NULL(efadv_cq_from_ibv_cq_ex, "@@EFA_1.2")
STUB_NULL(efadv_create_cq, "@@EFA_1.2")
/* clang-format on */
