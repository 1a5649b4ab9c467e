/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CLOCK_MONOTONIC for a caller that asks millions of times a second.  The
 * processor's counter tells how much time has passed since the clock itself was
 * read; after CLOCK_STRETCH_NS the clock is read again.  Reading the clock
 * takes 20 ns and holds up the instructions that follow; reading the counter
 * takes half of that and holds up none.
 *
 *	clock		clock		clock
 *	  |  + counter	  |  + counter	  |
 *	  v		  v		  v
 *
 * The result is never ahead of the clock, at most CLOCK_LAG_NS behind it, and
 * never goes back.  Where the counter cannot be trusted each call reads the
 * clock.  Owner: struct progress; lock: the progress lock.
 */
#ifndef HOST_CLOCK_H
#define HOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define CLOCK_STRETCH_NS 50000u
#define CLOCK_LAG_NS	 5000u

struct clock {
	/* A reading of the clock that took more ticks was interrupted. */
	uint64_t sure;
	uint64_t tick, ns; /* the last reading, by counter and clock */
	/* Ticks for which a reading serves; 0: each call reads the clock. */
	uint64_t good_for;
	/* Ticks for which the last reading serves: good_for, or 0 if the
	 * reading was interrupted. */
	uint64_t until;
	/* Nanoseconds a tick, with 32 bits of fraction, rounded down. */
	uint64_t rate;
	/* The rate is measured from here; 0: not begun. */
	uint64_t base_tick, base_ns;
	uint64_t said;	/* the last result */
	uint32_t wrong; /* how often a result was ahead of the clock */
	bool is_off;	/* there is no counter that can be used */
};

/* The processor's counter; 0: this processor has none that is known. */
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/* Starts c, and looks whether the counter can be used. */
void clock_init(struct clock *c);
/* CLOCK_MONOTONIC, in ns. */
uint64_t clock_real(void);
/* The clock said `ns` between the counts `before` and `after`: takes that as
 * the last reading, and returns the time now.  Pure. */
uint64_t clock_look(struct clock *c, uint64_t before, uint64_t ns,
		    uint64_t after);
/* Reads the clock; the time now. */
uint64_t clock_sync(struct clock *c);

/* The time at `tick`, or 0: the clock has to be read.  Pure. */
static inline uint64_t clock_at(struct clock *c, uint64_t tick)
{
	uint64_t past = tick - c->tick, ns;

	if (past >= c->until)
		return 0;
	ns = c->ns + (past * c->rate >> 32);
	if (ns > c->said)
		c->said = ns;
	return c->said;
}

/* The time now, in ns. */
static inline uint64_t clock_now(struct clock *c)
{
	uint64_t ns = clock_at(c, clock_ticks());

	return ns ? ns : clock_sync(c);
}

#endif
