/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that private.c exports in the private version nodes, most of
 * them under several names.  No lock.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <infiniband/verbs.h>

#include <stdbool.h>

/* Always false; exported as verbs_allow_disassociate_destroy. */
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

/* Calls v_query_gid_type; exported as ibv_query_gid_type.  Stores 1 in *type
 * for RoCE v2, else 0.  Returns 0, or -1 and errno with a message. */
int private_gid_type(struct ibv_context *context, uint8_t port,
		     unsigned int index, unsigned int *type);
/* Calls v_wr_opcode_str; exported as ibv_wr_opcode_str.  Returns the name of
 * the opcode as a static string. */
const char *private_opcode_str(enum ibv_wr_opcode opcode);

#endif
