/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A libmlx4.so.1 in which every function fails.  Programs link this library,
 * but no adverb device is of the library's vendor.  The real library does not
 * check the vendor of a device, and so has no error for this case.  Each call
 * fails with EOPNOTSUPP.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(mlx4dv_create_qp, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_init_obj, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_query_device, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_set_context_attr, "@@MLX4_1.0")
/* clang-format on */
