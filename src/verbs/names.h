/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of enum values that no public header declares. */
#ifndef VERBS_NAMES_H
#define VERBS_NAMES_H

#include <infiniband/verbs.h>

/* Returns the name of an opcode, a static string and never NULL:
 * ibv_wr_opcode_str of the private nodes. */
const char *v_wr_opcode_str(enum ibv_wr_opcode opcode);

#endif
