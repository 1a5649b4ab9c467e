/* SPDX-License-Identifier: BSD-2-Clause */
/* How these programs fail. */
#ifndef TESTS_THREADS_NEED_H
#define TESTS_THREADS_NEED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void die(const char *what)
{
	printf("FAIL %s\n", what);
	exit(1);
}

static inline void need(bool good, const char *what)
{
	if (!good)
		die(what);
}

#endif
