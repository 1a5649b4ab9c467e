/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host: its memory, one process at a time, and the loop that makes progress
 * as host/progress does in a real process.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include "sim/world.h"

/* Makes the host with this index, with an IPv4 address if v4, else with one of
 * IPv6, and boots the host.  mem is NULL, or the zeroed memory of a host of an
 * earlier world; the host owns mem from here on. */
void node_init(struct world *w, uint8_t index, bool v4, uint8_t *mem);
/* Ends the process, and clears the host's memory, which the next world uses. */
void node_fini(struct host *h);
/* Starts a process with an empty adapter. */
void node_boot(struct host *h);
/* Ends the process.  All of its queue pairs must have been destroyed.  The
 * world fails if timers, packets or memory of its arena are left. */
void node_kill(struct host *h);
/* Allocates application memory, and returns its offset in h->memory.  Aborts if
 * WORLD_MEM is used up.  In front of the memory are guard bytes, to which
 * nothing may write. */
uint32_t node_alloc(struct host *h, uint32_t bytes);
/* Returns the time of the host's own clock, in nanoseconds. */
uint64_t node_now(const struct host *h);
/* Can programs run on h now?  Not while h is dead or stalled. */
bool node_is_up(const struct host *h);
/* Wakes a process that engine_wants_wake, engine_post_apart or
 * engine_resume_apart has returned, unless the process has ended. */
void node_wake(void *process);
/* Puts frame f into the host's socket; the host owns f from here on.  Drops f
 * if the host is dead or unplugged, or if the socket is full and the host
 * cannot receive. */
void node_receive(struct host *h, struct flight *f);
/* Returns the world's time at which the host next has to make progress;
 * UINT64_MAX: never. */
uint64_t node_next(const struct host *h);
/* Makes progress once: receives, serves timers, and sends.  Does nothing while
 * the host is dead or stalled. */
void node_turn(struct host *h);

#endif
