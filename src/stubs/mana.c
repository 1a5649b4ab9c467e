/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libmana.so.1 in which every function fails.  Programs link this library,
 * but no adverb device is of the library's vendor.  The real library does not
 * check the vendor of a device, and so has no error for this case.  Each call
 * fails with EOPNOTSUPP.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_ERRNO(manadv_init_obj, "@@MANA_1.0")
STUB_ERRNO(manadv_set_context_attr, "@@MANA_1.0")
STUB_NULL(manadv_alloc_pd, "@@MANA_1.1")
/* clang-format on */
