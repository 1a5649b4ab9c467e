/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmana.so.1, inert.  Programs link this library, but no adverb device is of
 * its vendor.  So each call fails with EOPNOTSUPP, as in the other inert
 * libraries; the real library does not check the vendor of a device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_ERRNO(manadv_init_obj, "@@MANA_1.0")
STUB_ERRNO(manadv_set_context_attr, "@@MANA_1.0")
STUB_NULL(manadv_alloc_pd, "@@MANA_1.1")
/* clang-format on */
