/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libhns.so.1, inert.  Programs link this library, but no adverb device is of
 * its vendor.  So each call fails with the error that the real library returns
 * for another vendor's device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(hnsdv_create_qp, "@@HNS_1.0")
STUB_FALSE(hnsdv_is_supported, "@@HNS_1.0")
STUB_ERRNO(hnsdv_query_device, "@@HNS_1.0")
/* clang-format on */
