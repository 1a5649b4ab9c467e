/* SPDX-License-Identifier: BSD-2-Clause */
#include "newer_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct later later;

static const struct {
	const char *name, *node;
	size_t at;
} calls[] = {
#define CALL(name, node)                                                       \
	{                                                                      \
		"ibv_" #name, "IBVERBS_" node, offsetof(struct later, name)    \
	}
	CALL(alloc_dmah, "1.15"),
	CALL(dealloc_dmah, "1.15"),
	CALL(reg_mr_ex, "1.15"),
	CALL(dm_export_dmabuf_fd, "1.16"),
	CALL(query_port_speed, "1.16"),
	CALL(alloc_buf, "1.17"),
	CALL(free_buf, "1.17"),
	CALL(reg_buf_mr, "1.17"),
	CALL(export_buf_dmabuf_fd, "1.18"),
	{"_ibv_query_comp_cntr_caps", "IBVERBS_1.18",
	 offsetof(struct later, query_comp_cntr_caps)},
	CALL(create_comp_cntr, "1.18"),
	CALL(destroy_comp_cntr, "1.18"),
	CALL(set_comp_cntr, "1.18"),
	CALL(set_err_comp_cntr, "1.18"),
	CALL(inc_comp_cntr, "1.18"),
	CALL(inc_err_comp_cntr, "1.18"),
	CALL(read_comp_cntr, "1.18"),
	CALL(read_err_comp_cntr, "1.18"),
	CALL(qp_attach_comp_cntr, "1.18"),
};

void newer_find(void)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *found =
			dlvsym(RTLD_DEFAULT, calls[i].name, calls[i].node);

		if (!found) {
			printf("FAIL set-up: no %s in node %s\n"
			       "0 passed, 1 failed, 0 skipped\n",
			       calls[i].name, calls[i].node);
			exit(1);
		}
		*(void **)(void *)((char *)&later + calls[i].at) = found;
	}
}
