/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/monotonic.h"

#include <time.h>

#define SECOND 1000000000u

uint64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

uint64_t monotonic_ms(void)
{
	return monotonic_ns() / 1000000;
}

void monotonic_after(uint32_t ms, struct timespec *t)
{
	uint64_t ns = monotonic_ns() + (uint64_t)ms * 1000000;

	*t = (struct timespec){.tv_sec = (time_t)(ns / SECOND),
			       .tv_nsec = (long)(ns % SECOND)};
}
