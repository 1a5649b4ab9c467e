/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/mischief.h"

#include "sim/node.h"
#include "sim/pair.h"
#include "sim/subnet.h"
#include "util/bits.h"

static void schedule_next(struct world *w)
{
	uint64_t mean = (1 + rng_below(&w->rng, 40)) * WORLD_MS;

	w->due.mischief_ns = w->now_ns + rng_below(&w->rng, (uint32_t)mean);
}

void mischief_init(struct world *w)
{
	w->due.mischief_ns = UINT64_MAX;
	/* a third of all worlds has no faults of hosts and programs */
	if (!rng_chance(&w->rng, 333333))
		schedule_next(w);
}

/* Draws when a fault that begins now ends: at the latest at quiet_ns. */
static uint64_t choose_end(struct world *w, uint32_t most_ms)
{
	uint64_t end = w->now_ns + rng_below(&w->rng, most_ms) * WORLD_MS;

	return bits_min_u64(end, w->due.quiet_ns);
}

/* Stops the process of h for a while, as SIGSTOP does. */
static void stall_host(struct world *w, struct host *h)
{
	h->stalled_ns = choose_end(w, 200);
}

/* Makes the link of h drop all frames for a while.  If the world has a subnet,
 * disturbs the subnet instead. */
static void unplug_host(struct world *w, struct host *h)
{
	if (w->subnet) {
		subnet_disturb(w);
		return;
	}
	h->unplugged_ns = choose_end(w, 100);
}

/* Moves the clock of h forward, as if its machine had been suspended.  The
 * world's clock does not move. */
static void jump_clock(struct world *w, struct host *h)
{
	h->skew_ns += (uint64_t)rng_below(&w->rng, 200000) * WORLD_MS;
}

/* Ends the process of h, and draws when the next process starts. */
static void kill_host(struct world *w, struct host *h)
{
	if (h->dead)
		return;
	h->restart_ns = choose_end(w, 100);
	pair_host_dies(w, h);
	node_kill(h);
}

static void start_dead(struct world *w)
{
	for (uint32_t i = 0; i < w->host_count; i++) {
		struct host *h = &w->hosts[i];

		if (h->dead && h->restart_ns <= w->now_ns) {
			node_boot(h);
			pair_host_is_back(w, h);
		}
	}
}

void mischief_step(struct world *w)
{
	struct host *h = &w->hosts[rng_below(&w->rng, w->host_count)];

	start_dead(w);
	if (world_is_quiet(w)) {
		w->due.mischief_ns = UINT64_MAX;
		for (uint32_t i = 0; i < w->host_count; i++)
			if (w->hosts[i].dead)
				w->due.mischief_ns = w->now_ns + WORLD_MS;
		return;
	}
	switch (rng_below(&w->rng, 12)) {
	case 0:
		kill_host(w, h);
		break;
	case 1:
	case 2:
		stall_host(w, h);
		break;
	case 3:
		unplug_host(w, h);
		break;
	case 4:
		jump_clock(w, h);
		break;
	default:
		pair_disturb(w);
		break;
	}
	schedule_next(w);
}
