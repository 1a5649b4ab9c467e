/* SPDX-License-Identifier: BSD-2-Clause */
/* Asserts that the structs to which programs have access have the layout of
 * rdma-core 44 on x86-64. */
#include <infiniband/umad.h>

#include <stddef.h>

#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define AT(type, field, bytes)                                                 \
	_Static_assert(offsetof(struct type, field) == (bytes),                \
		       #type "." #field)

SIZE(umad_port, 112);
SIZE(umad_ca, 208);
SIZE(ib_user_mad, 64);
SIZE(ib_mad_addr, 44);
AT(ib_user_mad, addr, 20);
AT(ib_user_mad, data, 64);
