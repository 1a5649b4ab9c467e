/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "util/bits.h"
#include "util/monotonic.h"

/* The least time over which the rate of the counter is measured. */
#define BASE_NS 10000000u
/* After this time a new measurement begins, since NTP changes the rate of the
 * clock. */
#define BASE_MAX   1000000000u
#define SURE_TICKS 4096 /* 1 us at 4 GHz, 4 us at 1 GHz */
#define BEHIND_NS  64	/* two processors' counters differ by less */
/* A part of 1/SLOW is subtracted from the rate, to keep results behind the
 * clock. */
#define SLOW 1024
/* So many readings may show that the counter was wrong (is_wrong); after one
 * more, the counter is not used any more. */
#define WRONG_MAX 3

#if defined(__x86_64__)
/* Does Linux take the time from another source than the counter?  Linux does so
 * if the counters of the processors do not agree.  False if the file that names
 * the source cannot be read. */
static bool is_linux_at_odds(void)
{
	static const char *const good[] = {"tsc", "kvm-clock",
					   "hyperv_clocksource_tsc"};
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/"
			"current_clocksource",
			"re");
	char name[32] = "";
	bool is_good = !f || !fgets(name, sizeof(name), f);

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		is_good |= !strncmp(name, good[i], strlen(good[i]));
	if (f)
		fclose(f);
	return !is_good;
}
#endif

/* Does the counter count at a constant rate, and may this process read it? */
static bool is_usable(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	int may = PR_TSC_ENABLE;

	return !prctl(PR_GET_TSC, &may) && may == PR_TSC_ENABLE &&
	       __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8 &&
	       !is_linux_at_odds();
#else
	return clock_ticks();
#endif
}

/* Returns the value of clock.sure. */
static uint64_t sure_ticks(void)
{
#if defined(__aarch64__)
	uint64_t hz; /* 25 MHz to 1 GHz */

	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz / 1000000 + 1;
#else
	return SURE_TICKS;
#endif
}

void clock_init(struct clock *c)
{
	*c = (struct clock){.sure = sure_ticks(), .is_off = !is_usable()};
}

static uint64_t scale_ticks(uint64_t ticks, uint64_t rate)
{
	return (uint64_t)((unsigned __int128)ticks * rate >> 32);
}

/* Has the counter gone back, or is the time by the counter ahead of the clock?
 * Then the counter was changed, or counts faster than before. */
static bool is_wrong(const struct clock *c, uint64_t before, uint64_t ns)
{
	return c->good_for &&
	       (before < c->tick ||
		c->ns + scale_ticks(before - c->tick, c->rate) > ns);
}

static void forget_rate(struct clock *c)
{
	c->good_for = c->base_tick = 0;
	c->is_off |= ++c->wrong > WRONG_MAX;
}

static void measure_rate(struct clock *c, uint64_t ns, uint64_t tick)
{
	uint64_t passed = ns - c->base_ns, rate;

	if (c->base_tick && tick > c->base_tick && passed >= BASE_NS) {
		rate = (uint64_t)(((unsigned __int128)passed << 32) /
				  (tick - c->base_tick));
		c->rate = rate - rate / SLOW;
		c->good_for = ((uint64_t)CLOCK_STRETCH_NS << 32) / rate;
	}
	if (!c->base_tick || passed > BASE_MAX) {
		c->base_tick = tick;
		c->base_ns = ns;
	}
}

uint64_t clock_look(struct clock *c, uint64_t before, uint64_t ns,
		    uint64_t after)
{
	bool is_sure = after - before < c->sure;

	if (is_wrong(c, before, ns))
		forget_rate(c);
	if (is_sure && !c->is_off)
		measure_rate(c, ns, after);
	c->ns = ns - BEHIND_NS;
	c->tick = after;
	c->until = is_sure ? c->good_for : 0;
	c->said = bits_max_u64(c->said, c->ns);
	return c->said;
}

uint64_t clock_sync(struct clock *c)
{
	uint64_t before = clock_ticks(), ns = monotonic_ns();

	return clock_look(c, before, ns, clock_ticks());
}
