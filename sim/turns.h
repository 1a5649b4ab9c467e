/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets the simulated hosts make progress at the same time.  Each host's turn is
 * a fiber, and all programs together have one more fiber.  At every step
 * (util/step.h) the seed decides whether another fiber runs.
 *
 *	programs	poll, arm, post ... doorbell after the host's turn
 *	host 0		lock ... copy ..... copy ... unlock
 *	host 1		wait .............................. lock ...
 *
 * Only a simulator built with ADVERB_STEPS uses this module, for one world at a
 * time.
 */
#ifndef SIM_TURNS_H
#define SIM_TURNS_H

#include "sim/world.h"

/* Runs a turn of each host, and a turn of the programs if `programs` is true.
 * The caller of world_init sets world.take_turns to this function. */
void turns_take(struct world *w, bool programs);

#endif
