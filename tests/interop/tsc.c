/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints this machine's time stamp counter's rate in kHz.  An emulated kernel
 * counts it beside an emulated timer while it boots, and on a busy machine
 * comes to a clock that runs several times too fast: so the kernel is told the
 * rate.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Returns the counter, and in *ns the time of the same moment, from the one of
 * 1000 readings that took the shortest time. */
static uint64_t look(uint64_t *ns)
{
	uint64_t best = UINT64_MAX, ticks = 0;

	for (int i = 0; i < 1000; i++) {
		uint64_t before = now_ns(), t = __rdtsc(), after = now_ns();

		if (after - before < best) {
			best = after - before;
			ticks = t;
			*ns = before + best / 2;
		}
	}
	return ticks;
}

int main(void)
{
	uint64_t from_ns, to_ns, from = look(&from_ns), to;

	usleep(100000);
	to = look(&to_ns);
	printf("%lu\n",
	       (unsigned long)((to - from) * 1000000 / (to_ns - from_ns)));
	return 0;
}
