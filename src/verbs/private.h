/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bodies behind the table in private.c.  No state, no lock.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <infiniband/verbs.h>

#include <stdbool.h>

extern bool private_disassociate_destroy;

/* EOPNOTSUPP; NULL or -1 and errno EOPNOTSUPP; no effect; 0. */
int private_command(void);
void *private_maker(void);
int private_descriptor(void);
void private_nothing(void);
unsigned int private_zero(void);

/* v_query_gid_type() and v_wr_opcode_str() */
int private_gid_type(struct ibv_context *context, uint8_t port,
		     unsigned int index, unsigned int *type);
const char *private_opcode_str(enum ibv_wr_opcode opcode);

#endif
