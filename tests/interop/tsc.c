/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tsc: prints the rate of this machine's time stamp counter in kHz, which is
 * then given to the guest's kernel.  An emulated kernel would measure the rate
 * with an emulated timer while it boots.  On a busy machine this measurement is
 * so wrong that the kernel's clock runs several times too fast.
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

/* Returns the counter, and in *ns the time of the same moment: the result of
 * that one of 1000 readings which took the shortest time. */
static uint64_t read_clocks(uint64_t *ns)
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
	uint64_t from_ns, to_ns, from = read_clocks(&from_ns), to;

	usleep(100000);
	to = read_clocks(&to_ns);
	printf("%lu\n",
	       (unsigned long)((to - from) * 1000000 / (to_ns - from_ns)));
	return 0;
}
