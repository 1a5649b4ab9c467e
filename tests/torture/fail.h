/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures of allocations and of other functions that may run out of a
 * resource. */
#ifndef TESTS_TORTURE_FAIL_H
#define TESTS_TORTURE_FAIL_H

#include <stdbool.h>

/* Lets the n-th call from now on fail.  The calls of all functions that fail.c
 * wraps, by all threads, count together, from 1. */
void fail_at(long n);
/* From now on no call fails.  Returns the name of the function that failed, or
 * NULL if the n-th call was not reached. */
const char *fail_done(void);

#endif
