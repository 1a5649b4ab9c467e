/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Named points in code that works on shared memory.  At each of them a test may
 * let the process die, or let another process run.  A STEP compiles to nothing,
 * unless the source is built with ADVERB_STEPS.  Then a STEP calls the test's
 * step_at, which runs another process, returns, or never returns
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
