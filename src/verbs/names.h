/* SPDX-License-Identifier: BSD-2-Clause */
/* A function that names enum values, and that no public header declares. */
#ifndef VERBS_NAMES_H
#define VERBS_NAMES_H

#include <infiniband/verbs.h>

/* Returns the name of an opcode as a static string; "unknown" for other values.
 * ibv_wr_opcode_str of the version nodes IBVERBS_PRIVATE_* calls this function.
 */
const char *v_wr_opcode_str(enum ibv_wr_opcode opcode);

#endif
