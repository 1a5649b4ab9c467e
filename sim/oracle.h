/* SPDX-License-Identifier: BSD-2-Clause */
/* What must hold, told from the workload alone and never from the engine. */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "sim/workload.h"

/* wr_id: bit 63 a receive, then the flow it belongs to, then its index. */
#define ORACLE_RECV (1ull << 63)

void oracle_completion(struct world *w, const struct cqe *c);
/* Has everything completed that must? */
bool oracle_is_over(const struct world *w);
/* The last check: both memories, byte for byte. */
void oracle_memory(struct world *w);

#endif
