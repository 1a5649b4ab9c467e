/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/mischief.h"
#include "sim/node.h"
#include "sim/oracle.h"
#include "sim/pair.h"
#include "sim/subnet.h"
#include "sim/workload.h"
#include "util/bits.h"

#define SECOND 1000000000ull
/* 60 s of the engine's patience with a silent peer, and 60 s for the rest. */
#define BOUND_NS (120 * SECOND)

/* ---- failures and the hash ---- */

void world_fail(struct world *w, const char *format, ...)
{
	va_list args;

	if (w->failure[0])
		return;
	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
}

void world_hash(struct world *w, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	for (; bytes >= 8; bytes -= 8, p += 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		w->hash = (w->hash ^ v) * 0x9e3779b97f4a7c15ull;
		w->hash ^= w->hash >> 32;
	}
	while (bytes--)
		w->hash = (w->hash ^ *p++) * 0x100000001b3ull;
}

void world_take_lock(struct world *w, struct host *h)
{
	if (w->take_lock)
		w->take_lock(w, h);
}

bool world_is_quiet(const struct world *w)
{
	return w->now_ns >= w->due.quiet_ns;
}

/* ---- frames in flight ---- */

static bool is_sooner(const struct flight *a, const struct flight *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void world_fly(struct world *w, struct flight *f)
{
	size_t i = w->flights.count++;

	f->order = w->order++;
	if (w->flights.count > w->flights.room) {
		w->flights.room = w->flights.room ? w->flights.room * 2 : 256;
		w->flights.heap =
			realloc(w->flights.heap,
				w->flights.room * sizeof(*w->flights.heap));
		if (!w->flights.heap)
			abort();
	}
	for (; i && is_sooner(f, w->flights.heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->flights.heap[i] = w->flights.heap[(i - 1) / 2];
	w->flights.heap[i] = f;
}

/* Takes the frame that arrives first out of the heap. */
static struct flight *pop_flight(struct world *w)
{
	struct flight *first = w->flights.heap[0],
		      *last = w->flights.heap[--w->flights.count];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < w->flights.count; i = child) {
		if (child + 1 < w->flights.count &&
		    is_sooner(w->flights.heap[child + 1],
			      w->flights.heap[child]))
			child++;
		if (!is_sooner(w->flights.heap[child], last))
			break;
		w->flights.heap[i] = w->flights.heap[child];
	}
	w->flights.heap[i] = last;
	return first;
}

/* ---- the brokers' answers about peers ---- */

/* Answers a question about a peer. */
static void answer_ask(struct world *w, const struct ask *a)
{
	const struct flow *f = pair_flow_of(w, a->from, a->qpn);
	enum engine_peer state = ENGINE_PEER_UNKNOWN;

	if (!f || a->from->dead)
		return;
	if (w->liveness != LIVENESS_FOREIGN)
		state = pair_peer_is_gone(f) ? ENGINE_PEER_GONE
					     : ENGINE_PEER_ALIVE;
	engine_peer_state(a->from->engine, a->qpn, a->connection, state,
			  node_now(a->from));
}

void world_ask(struct world *w, struct host *h, const struct engine_event *e)
{
	struct ask a = {w->now_ns, h, e->qpn, e->connection};

	if (w->liveness == LIVENESS_MUTE)
		return;
	if (w->liveness != LIVENESS_LATE) {
		answer_ask(w, &a);
		return;
	}
	a.at_ns += rng_below(&w->rng, 200) * WORLD_MS;
	if (w->ask_count < WORLD_ASKS)
		w->asks[w->ask_count++] = a;
}

static void answer_due(struct world *w)
{
	for (uint32_t i = 0; i < w->ask_count;) {
		struct ask a = w->asks[i];

		if (a.at_ns > w->now_ns) {
			i++;
			continue;
		}
		w->asks[i] = w->asks[--w->ask_count];
		answer_ask(w, &a);
	}
}

/* ---- the world ---- */

/* In half of the worlds each host may lack some mechanisms that its peers have.
 * A separate generator draws these mechanisms, so that the draw does not change
 * the numbers of w->rng. */
static void draw_without(struct world *w, uint64_t seed)
{
	struct rng r;

	rng_init(&r, ~seed);
	if (rng_chance(&r, 500000))
		return;
	for (uint32_t i = 0; i < w->host_count; i++)
		w->hosts[i].without = (struct engine_without){
			.credits = rng_chance(&r, 500000),
			.acks = rng_chance(&r, 500000),
			.eager = rng_chance(&r, 500000)};
}

void world_init(struct world *w, uint64_t seed, uint32_t loss_percent,
		enum world_path path)
{
	static const uint32_t rates[] = {0, 1000, 30000, 200000};
	uint8_t *mem[WORLD_HOSTS];

	for (int i = 0; i < WORLD_HOSTS; i++)
		mem[i] = w->hosts[i].memory.bytes;
	memset(w, 0, sizeof(*w));
	w->hash = 0xcbf29ce484222325ull;
	rng_init(&w->rng, seed);
	w->faults.drop = loss_percent * 10000;
	w->faults.duplicate = rates[rng_below(&w->rng, 4)];
	w->faults.reorder = rates[rng_below(&w->rng, 4)];
	w->faults.corrupt = rates[rng_below(&w->rng, 4)];
	w->faults.truncate = rates[rng_below(&w->rng, 4)];
	w->strict = rng_chance(&w->rng, 100000);
	w->liveness = (enum liveness)rng_below(&w->rng, 4);
	w->kind.has_streams = path == WORLD_STREAMS;
	w->kind.direct = path == WORLD_DIRECT || path == WORLD_TURNS ||
			 (path == WORLD_SUBNET && (seed & 2));
	w->kind.has_shm_ack = path == WORLD_PACKETS && (seed & 2);
	w->kind.sources = path == WORLD_PACKETS && !w->kind.has_shm_ack;
	w->kind.is_mapped = seed & 4;
	w->kind.has_atomics =
		path == WORLD_DIRECT && rng_chance(&w->rng, 500000);
	w->host_count = 2 + rng_below(&w->rng, WORLD_HOSTS - 1);
	w->due.quiet_ns = (50 + rng_below(&w->rng, 250)) * WORLD_MS;
	w->due.deadline_ns = w->due.quiet_ns + BOUND_NS;
	draw_without(w, seed);
	if (path == WORLD_SUBNET)
		subnet_init(w);
	for (uint32_t i = 0; i < w->host_count; i++)
		node_init(w, (uint8_t)i, seed & 1, mem[i]);
	for (uint32_t i = w->host_count; i < WORLD_HOSTS; i++)
		w->hosts[i].memory.bytes = mem[i];
	pair_init(w);
	mischief_init(w);
}

void world_fini(struct world *w)
{
	pair_fini(w);
	for (uint32_t i = 0; i < w->host_count; i++)
		node_fini(&w->hosts[i]);
	while (w->flights.count)
		free(w->flights.heap[--w->flights.count]);
	free(w->flights.heap);
	free(w->vagues.list);
	subnet_fini(w);
}

void world_free(struct world *w)
{
	for (int i = 0; i < WORLD_HOSTS; i++)
		free(w->hosts[i].memory.bytes);
}

/* Returns the time of the next event, which may be before now_ns. */
static uint64_t next_event(const struct world *w)
{
	uint64_t next = bits_min_u64(w->due.app_ns, w->due.mischief_ns);

	if (w->subnet)
		next = bits_min_u64(next, subnet_next(w));
	if (w->flights.count)
		next = bits_min_u64(next, w->flights.heap[0]->at_ns);
	for (uint32_t i = 0; i < w->host_count; i++)
		next = bits_min_u64(next, node_next(&w->hosts[i]));
	for (uint32_t i = 0; i < w->ask_count; i++)
		next = bits_min_u64(next, w->asks[i].at_ns);
	return next;
}

static void take_turns(struct world *w, bool programs)
{
	if (w->take_turns) {
		w->take_turns(w, programs);
		return;
	}
	if (programs)
		w->due.app_ns = workload_step(w);
	for (uint32_t i = 0; i < w->host_count; i++)
		node_turn(&w->hosts[i]);
}

static void step_world(struct world *w)
{
	uint64_t next = next_event(w);

	if (next > w->now_ns)
		w->now_ns = next;
	while (w->flights.count && w->flights.heap[0]->at_ns <= w->now_ns) {
		struct flight *f = pop_flight(w);

		if (w->subnet)
			subnet_enter(w, f);
		else
			node_receive(&w->hosts[f->to_host], f);
	}
	if (w->due.mischief_ns <= w->now_ns)
		mischief_step(w);
	answer_due(w);
	if (w->subnet)
		subnet_turn(w);
	take_turns(w, w->due.app_ns <= w->now_ns);
	if (w->due.app_ns > w->now_ns + 20000 && workload_has_news(w))
		w->due.app_ns = w->now_ns + rng_below(&w->rng, 20000);
}

void world_run(struct world *w)
{
	while (!w->failure[0] && !pair_all_over(w)) {
		step_world(w);
		if (w->now_ns > w->due.deadline_ns)
			pair_stuck(w);
	}
	if (!w->failure[0])
		oracle_end(w);
	if (!w->failure[0] && w->subnet)
		subnet_check(w);
}
