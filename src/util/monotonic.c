/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/monotonic.h"

#include <time.h>

uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t monotonic_ms(void)
{
	return monotonic_ns() / 1000000;
}
