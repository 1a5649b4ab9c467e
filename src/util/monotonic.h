/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CLOCK_MONOTONIC: the time since some point before the program began.  The
 * clock is never set back.  No state, no lock, no cancellation point.  Outside
 * util, no file of a sans-IO folder includes this header, unless ci/lint-layers
 * names the file as an exception: the functions of such a folder get the time
 * as an argument.
 */
#ifndef UTIL_MONOTONIC_H
#define UTIL_MONOTONIC_H

#include <stdint.h>

struct timespec;

/* Returns the time in nanoseconds. */
uint64_t monotonic_ns(void);
/* Returns the time in milliseconds, rounded down. */
uint64_t monotonic_ms(void);
/* Stores in *t the time that is `ms` milliseconds from now, for a call that
 * waits until an absolute time of CLOCK_MONOTONIC. */
void monotonic_after(uint32_t ms, struct timespec *t);

#endif
