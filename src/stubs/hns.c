/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libhns.so.1, inert.  Programs link it; none of our devices is one of its
 * kind, so every call answers as the real library does for a foreign device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(hnsdv_create_qp, "@@HNS_1.0")
STUB_FALSE(hnsdv_is_supported, "@@HNS_1.0")
STUB_ERRNO(hnsdv_query_device, "@@HNS_1.0")
/* clang-format on */
