/* SPDX-License-Identifier: BSD-2-Clause */
/* Let the n-th allocation from now on, of any kind, fail. */
#ifndef TESTS_TORTURE_FAIL_H
#define TESTS_TORTURE_FAIL_H

#include <stdbool.h>

void fail_at(long n);
/* No more failures: the function that failed, NULL if none was reached. */
const char *fail_done(void);

#endif
