/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that the verbs headers we build against do not declare.
 */
#ifndef VERBS_NAMES_H
#define VERBS_NAMES_H

#include <infiniband/verbs.h>

/* Static string, never NULL. */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

#endif
