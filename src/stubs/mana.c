/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmana.so.1, inert.  Programs link it; none of our devices is one of its
 * kind, so every call answers as the real library does for a foreign device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_ERRNO(manadv_init_obj, "@@MANA_1.0")
STUB_ERRNO(manadv_set_context_attr, "@@MANA_1.0")
STUB_NULL(manadv_alloc_pd, "@@MANA_1.1")
/* clang-format on */
