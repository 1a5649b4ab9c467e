/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures of allocations and of other functions that may run out of a
 * resource. */
#ifndef TESTS_TORTURE_FAIL_H
#define TESTS_TORTURE_FAIL_H

#include <stdbool.h>

/* The n-th call from now on fails, of all calls of functions that fail.c wraps.
 * n begins with 1.  Calls of different functions and threads count together. */
void fail_at(long n);
/* From now on no call fails.  Returns the name of the function that failed, or
 * NULL if the n-th call was not reached. */
const char *fail_done(void);

#endif
