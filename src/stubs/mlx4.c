/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmlx4.so.1, inert.  Programs link this library, but no adverb device is of
 * its vendor.  So each call fails with EOPNOTSUPP, as in the other inert
 * libraries; the real library does not check the vendor of a device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(mlx4dv_create_qp, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_init_obj, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_query_device, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_set_context_attr, "@@MLX4_1.0")
/* clang-format on */
