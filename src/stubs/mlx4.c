/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libmlx4.so.1, inert.  Programs link it; none of our devices is one of its
 * kind, so every call answers as the real library does for a foreign device.
 */
#include "stubs/inert.h"

/* clang-format off */
STUB_NULL(mlx4dv_create_qp, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_init_obj, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_query_device, "@@MLX4_1.0")
STUB_ERRNO(mlx4dv_set_context_attr, "@@MLX4_1.0")
/* clang-format on */
