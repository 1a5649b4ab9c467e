/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that private.c exports under the names of the private nodes.
 * No lock.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <infiniband/verbs.h>

#include <stdbool.h>

/* verbs_allow_disassociate_destroy; false. */
extern bool private_disassociate_destroy;

/* Returns EOPNOTSUPP. */
int private_command(void);
/* Returns NULL, with errno EOPNOTSUPP. */
void *private_maker(void);
/* Returns -1, with errno EOPNOTSUPP. */
int private_descriptor(void);
/* Does nothing. */
void private_nothing(void);
/* Returns 0. */
unsigned int private_zero(void);

/* ibv_query_gid_type of the private nodes: v_query_gid_type. */
int private_gid_type(struct ibv_context *context, uint8_t port,
		     unsigned int index, unsigned int *type);
/* ibv_wr_opcode_str of the private nodes: v_wr_opcode_str. */
const char *private_opcode_str(enum ibv_wr_opcode opcode);

#endif
