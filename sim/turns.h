/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that work at once: each turn is a thread of its own, and at every step
 * (util/step.h) the seed may let another go on.
 *
 *	programs     poll, arm, post ....  doorbell: when its host's turn is
 *over host 0       lock ... copy . copy ... unlock host 1             wait
 *................... lock ...
 *
 * Only in a simulator built with ADVERB_STEPS.  One world at a time.
 */
#ifndef SIM_TURNS_H
#define SIM_TURNS_H

#include "sim/world.h"

/* w->take_turns: a turn of all hosts, and of the programs if they are due. */
void turns_take(struct world *w, bool programs);

#endif
