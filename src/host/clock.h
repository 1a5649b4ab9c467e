/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CLOCK_MONOTONIC for a caller that asks millions of times a second.  Here "the
 * clock" is CLOCK_MONOTONIC and "the counter" is the processor's cycle counter,
 * which tells how much time has passed since the clock was read.  After
 * CLOCK_STRETCH_NS the clock is read again.  Reading the clock takes 20 ns and
 * delays the instructions that follow; reading the counter takes half as long
 * and delays none.
 *
 *	clock		clock		clock
 *	  |  + counter	  |  + counter	  |
 *	  v		  v		  v
 *
 * The result never goes back.  As long as the counter's rate is constant, the
 * result is never ahead of the clock, and at most CLOCK_LAG_NS behind it.  A
 * result from a reading that was interrupted may be behind by the length of the
 * interruption, too.  Where the counter cannot be trusted, each call reads the
 * clock.
 *
 * Owner and lock: those of the struct that has the clock: struct progress with
 * the progress lock, or struct post_lock with its own lock.
 */
#ifndef HOST_CLOCK_H
#define HOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* The longest time for which the counter is used between two readings of the
 * clock. */
#define CLOCK_STRETCH_NS 50000u
/* The most that a result is behind the clock. */
#define CLOCK_LAG_NS 5000u

struct clock {
	/* A reading of the clock that takes so many ticks or more was
	 * interrupted. */
	uint64_t sure;
	/* The last reading of the clock.  tick: the counter then.  ns: the
	 * clock's time minus the largest difference between the counters of two
	 * processors. */
	uint64_t tick, ns;
	/* For how many ticks a reading is used; 0: each call reads the
	 * clock. */
	uint64_t good_for;
	/* For how many ticks the last reading is used: good_for, or 0 if the
	 * reading was interrupted. */
	uint64_t until;
	/* Nanoseconds for each tick, with 32 bits of fraction; a little less
	 * than was measured (SLOW in clock.c). */
	uint64_t rate;
	/* The reading from which the rate is measured.  base_tick: the counter
	 * then; 0: there is no such reading.  base_ns: the clock's time. */
	uint64_t base_tick, base_ns;
	uint64_t said;	/* the last result */
	uint32_t wrong; /* readings that showed a wrong counter (clock.c) */
	bool is_off;	/* the counter cannot be used */
};

/* Reads the counter; 0: adverb knows no counter of this processor. */
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

/* Starts c, and checks whether the counter can be used. */
void clock_init(struct clock *c);
/* Takes a reading of the clock from the caller: the clock was `ns` at a time
 * when the counter was between `before` and `after`.  Returns the time when the
 * counter was `after`, in ns; if the reading was interrupted (clock.sure), a
 * time between `before` and `after`.  Makes no system call and reads no
 * counter. */
uint64_t clock_look(struct clock *c, uint64_t before, uint64_t ns,
		    uint64_t after);
/* Reads the clock, and returns the time now, in ns. */
uint64_t clock_sync(struct clock *c);

/* Returns the time when the counter was `tick`, in ns; 0: the caller has to
 * read the clock.  Makes no system call and reads no counter. */
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

/* Returns the time now, in ns. */
static inline uint64_t clock_now(struct clock *c)
{
	uint64_t ns = clock_at(c, clock_ticks());

	return ns ? ns : clock_sync(c);
}

#endif
