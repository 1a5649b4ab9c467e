/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host: its memory, its lives, and the loop that turns its engine as
 * host/progress does in a real process.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "sim/world.h"

/* mem: NULL, or that of an earlier world, all zero. */
void node_init(struct world *w, uint8_t index, bool v4, uint8_t *mem);
/* Keeps h->memory.bytes and clears it. */
void node_fini(struct host *h);
/* Begin a life: an empty adapter.  End it; no QP is left. */
void node_boot(struct host *h);
void node_kill(struct host *h);
/* Hand out application memory, behind a guard nothing may write to. */
uint32_t node_alloc(struct host *h, uint32_t bytes);
/* What the host's own clock says. */
uint64_t node_now(const struct host *h);
/* Can programs run on it now? */
bool node_is_up(const struct host *h);
/* A frame reaches its socket; f is owned by the host from here on. */
void node_receive(struct host *h, struct flight *f);
/* World time of the next turn it needs; and such a turn. */
uint64_t node_next(const struct host *h);
void node_turn(struct host *h);

#endif
