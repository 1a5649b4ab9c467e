/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/turns.h"

#include <stdlib.h>
#include <ucontext.h>

#include "sim/node.h"
#include "sim/workload.h"
#include "util/step.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
/* No test runs this file under ThreadSanitizer, so only AddressSanitizer is
 * told of a switch of stacks. */
#define __sanitizer_start_switch_fiber(fake, bottom, size)                     \
	((void)(fake), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(fake, bottom, size)                    \
	((void)(fake), (void)(bottom), (void)(size))
#endif

#define STACK_BYTES (1u << 20)	/* of a fiber */
#define PROGRAMS    WORLD_HOSTS /* the index of the programs' fiber */
#define NO_FIBER    (WORLD_HOSTS + 1)
#define SWITCH	    300000 /* the chance of a switch at a step, in millionths */
#define SLOW	    200000 /* the chance of a slow fiber, in millionths */
/* In the first SLOW_TURNS draws of a call of turns_take, the slow fiber is
 * drawn only if the turns of all other fibers are over.  The number is so high
 * that another fiber can give up its wait for a lock that the slow fiber holds.
 */
#define SLOW_TURNS (4 * ALOCK_SOON)

static struct {
	struct world *w;
	/* main: the context of turns_take; of: the contexts of the fibers, one
	 * for each host and one, PROGRAMS, for all programs */
	ucontext_t main, of[WORLD_HOSTS + 1];
	void *stack[WORLD_HOSTS + 1];
	bool is_running[WORLD_HOSTS + 1]; /* the fiber's turn is not over */
	/* now: the fiber that runs; slow: the slow fiber; both may be NO_FIBER.
	 * taken: how many draws this call of turns_take has made. */
	uint32_t now, slow, taken;
	const void *bottom; /* the lowest address of main's stack */
	size_t size;	    /* the bytes of main's stack */
} all = {.now = NO_FIBER};

static void switch_to_main(void)
{
	uint32_t me = all.now;
	void *fake = NULL;

	__sanitizer_start_switch_fiber(&fake, all.bottom, all.size);
	swapcontext(&all.of[me], &all.main);
	__sanitizer_finish_switch_fiber(fake, &all.bottom, &all.size);
}

static void run_fiber(uint32_t who)
{
	void *fake = NULL;

	__sanitizer_start_switch_fiber(&fake, all.stack[who], STACK_BYTES);
	swapcontext(&all.main, &all.of[who]);
	__sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

/* Lets another fiber run, if the seed decides so.  Does nothing if the caller
 * is not in a fiber. */
void step_at(const char *name)
{
	if (all.now != NO_FIBER && rng_chance(&all.w->rng, SWITCH))
		switch_to_main();
}

/* Fibers do not die while they hold a lock. */
static bool is_dead(alock_owner owner)
{
	return false;
}

static void report_slow(alock_owner owner)
{
}

/* Lets other fibers run while a fiber waits for a lock. */
static bool wait_for(alock_owner owner)
{
	switch_to_main();
	return false;
}

static const struct alock_judge judge = {is_dead, report_slow, NULL, wait_for};

static void fiber_main(void)
{
	uint32_t me = all.now;

	__sanitizer_finish_switch_fiber(NULL, &all.bottom, &all.size);
	if (me == PROGRAMS)
		all.w->due.app_ns = workload_step(all.w);
	else
		node_turn(&all.w->hosts[me]);
	all.is_running[me] = false;
	__sanitizer_start_switch_fiber(NULL, all.bottom, all.size);
}

static void begin_fiber(uint32_t who)
{
	ucontext_t *c = &all.of[who];

	if (!all.stack[who])
		all.stack[who] = malloc(STACK_BYTES);
	if (!all.stack[who] || getcontext(c))
		abort();
	c->uc_stack.ss_sp = all.stack[who];
	c->uc_stack.ss_size = STACK_BYTES;
	c->uc_link = &all.main;
	makecontext(c, fiber_main, 0);
	all.is_running[who] = true;
}

/* Draws a fiber whose turn is not over; NO_FIBER: all turns are over. */
static uint32_t draw_fiber(void)
{
	uint32_t running[WORLD_HOSTS + 1], count = 0;
	bool spares = all.taken++ < SLOW_TURNS;

	for (uint32_t i = 0; i <= WORLD_HOSTS; i++)
		if (all.is_running[i] && !(spares && i == all.slow))
			running[count++] = i;
	if (count)
		return running[rng_below(&all.w->rng, count)];
	return spares && all.slow != NO_FIBER && all.is_running[all.slow]
		       ? all.slow
		       : NO_FIBER;
}

/* In the programs' fiber: waits until the turn of h, or of every host if h is
 * NULL, is over.  After that the programs have the progress lock of h, or of
 * every host. */
static void take_lock(struct world *w, struct host *h)
{
	for (uint32_t i = 0; all.now == PROGRAMS && i < w->host_count; i++)
		while ((!h || h == &w->hosts[i]) && all.is_running[i]) {
			/* the host's fiber is no longer slow: otherwise the
			 * programs would only wait until SLOW_TURNS fibers were
			 * drawn */
			if (all.slow == i)
				all.slow = NO_FIBER;
			switch_to_main();
		}
}

void turns_take(struct world *w, bool programs)
{
	uint32_t who;

	all.w = w;
	w->take_lock = take_lock;
	all.taken = 0;
	all.slow = NO_FIBER;
	if (rng_chance(&w->rng, SLOW))
		all.slow = rng_below(&w->rng, w->host_count);
	for (uint32_t i = 0; i < w->host_count; i++)
		begin_fiber(i);
	if (programs)
		begin_fiber(PROGRAMS);
	while ((who = draw_fiber()) != NO_FIBER) {
		all.now = who;
		alock_open(who + 1, &judge);
		run_fiber(who);
	}
	all.now = NO_FIBER;
	alock_open(ALOCK_NAMELESS, NULL);
}
