/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libhns.so.1 in which every function fails.  Programs link this library, but
 * no adverb device is of the library's vendor.  So each call fails with the
 * error that the real library returns for another vendor's device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(hnsdv_create_qp, "@@HNS_1.0")
STUB_FALSE(hnsdv_is_supported, "@@HNS_1.0")
STUB_ERRNO(hnsdv_query_device, "@@HNS_1.0")
/* clang-format on */
