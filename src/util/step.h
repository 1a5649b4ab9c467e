/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named points in code that works on shared memory: between any two of them the
 * process may die, or another process may run.  A STEP compiles to nothing,
 * unless the source is built with ADVERB_STEPS: then the test's step_at decides
 * to return, never to return, or to run another process
 * (tests/scenario/crash_point.c, sim/turns.c).
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
