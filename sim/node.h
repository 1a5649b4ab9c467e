/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host: its memory, its processes one after the other, and the loop that
 * makes progress as host/progress does in a real process.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "sim/world.h"

/* Makes host number index, and boots it.  mem: NULL, or the memory of an
 * earlier world's host, all zero; the host's from here on. */
void node_init(struct world *w, uint8_t index, bool v4, uint8_t *mem);
/* Ends the process; clears h->memory.bytes, and keeps it for the next world. */
void node_fini(struct host *h);
/* Starts a process with an empty adapter. */
void node_boot(struct host *h);
/* Ends the process, whose queue pairs have all been destroyed. */
void node_kill(struct host *h);
/* Allocates application memory: an offset in h->memory.  Nothing may write to
 * the guard bytes in front of it. */
uint32_t node_alloc(struct host *h, uint32_t bytes);
/* The host's own clock, in nanoseconds. */
uint64_t node_now(const struct host *h);
/* Can programs run on it now? */
bool node_is_up(const struct host *h);
/* Wakes the process that the engine named (engine_kick, engine_post_apart). */
void node_kick(void *process);
/* Frame f reaches the host's socket; f is the host's from here on. */
void node_receive(struct host *h, struct flight *f);
/* The world's time at which the host next has to make progress. */
uint64_t node_next(const struct host *h);
/* Makes progress once. */
void node_turn(struct host *h);

#endif
