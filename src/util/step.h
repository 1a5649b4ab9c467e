/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named steps of work on what processes share: between any two of them one may
 * die, and another may come in between.  They are nothing but in sources built
 * with ADVERB_STEPS, where who tests decides what happens there: return, never
 * return, or let somebody else run (tests/scenario/death.c, sim/turns.c).
 */
#ifndef UTIL_STEP_H
#define UTIL_STEP_H

#ifdef ADVERB_STEPS
void step_at(const char *name);
#define STEP(name) step_at(name)
#else
#define STEP(name) ((void)0)
#endif

#endif
