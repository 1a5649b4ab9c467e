/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CLOCK_MONOTONIC for who asks millions of times a second: the processor's
 * counter says how much later it is than at the last look at the clock itself,
 * for CLOCK_STRETCH_NS; then it is looked at again.  To look takes 20 ns, and
 * what follows does not begin before; to count takes half of it and holds
 * nothing up.
 *
 *	look		look		look
 *	  |  + counter	  |  + counter	  |
 *	  v		  v		  v
 *
 * It is never ahead of the clock, at most CLOCK_LAG_NS behind it, and never
 * goes back.  Where the counter cannot be trusted each call is a look.
 * Owner: the lane; lock: its own.
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
	uint64_t sure;	   /* ticks: a look that took so long was interrupted */
	uint64_t tick, ns; /* of the last look */
	uint64_t good_for; /* ticks after one; 0: each call is a look */
	uint64_t until;	   /* after the last: as many, or none: interrupted */
	uint64_t rate;	   /* ns a tick, and 32 bits of fraction; a bit slow */
	uint64_t base_tick, base_ns; /* the rate is measured from here; 0 */
	uint64_t said;		     /* last */
	uint32_t wrong;		     /* how often it was ahead */
	bool is_off;		     /* there is no such counter */
};

/* The processor's counter; 0: it has none that we know. */
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

void clock_init(struct clock *c);
/* The clock itself. */
uint64_t clock_real(void);
/* It said `ns` between two looks at the counter; the time now.  Pure. */
uint64_t clock_look(struct clock *c, uint64_t before, uint64_t ns,
		    uint64_t after);
uint64_t clock_sync(struct clock *c);

/* The time at `tick`, or 0: it has to be looked at.  Pure. */
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

static inline uint64_t clock_now(struct clock *c)
{
	uint64_t ns = clock_at(c, clock_ticks());

	return ns ? ns : clock_sync(c);
}

#endif
