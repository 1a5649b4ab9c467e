/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/world.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/link.h"
#include "sim/oracle.h"
#include "sim/workload.h"
#include "util/bits.h"

#define ARENA_BYTES (16u << 20)
#define GUARD	    4096u
#define SECOND	    1000000000ull
#define BATCH	    16
#define ROUNDS	    3

/* ---- memory ---- */

static uint8_t *reach(struct host *h, uint64_t va, uint64_t bytes)
{
	if (va < h->va || va - h->va > h->brk || bytes > h->brk - (va - h->va))
		return NULL;
	return h->mem + (va - h->va);
}

static int mem_write(struct space *s, const struct space_vec *to, size_t n,
		     const void *src)
{
	const uint8_t *from = src;

	for (size_t i = 0; i < n; i++) {
		uint8_t *p = reach((struct host *)s, to[i].va, to[i].bytes);

		if (!p)
			return -EFAULT;
		memcpy(p, from, to[i].bytes);
		from += to[i].bytes;
	}
	return 0;
}

static int mem_read(struct space *s, const struct space_vec *from, size_t n,
		    void *dst)
{
	uint8_t *to = dst;

	for (size_t i = 0; i < n; i++) {
		uint8_t *p = reach((struct host *)s, from[i].va, from[i].bytes);

		if (!p)
			return -EFAULT;
		memcpy(to, p, from[i].bytes);
		to += from[i].bytes;
	}
	return 0;
}

static int mem_atomic(struct space *s, enum space_atomic op, uint64_t va,
		      uint64_t swap_add, uint64_t compare, uint64_t *old)
{
	uint8_t *p = reach((struct host *)s, va, 8);
	uint64_t value;

	if (!p)
		return -EFAULT;
	memcpy(old, p, 8);
	value = op == SPACE_FETCH_ADD ? *old + swap_add
		: *old == compare     ? swap_add
				      : *old;
	memcpy(p, &value, 8);
	return 0;
}

static const struct space_ops mem_ops = {mem_write, mem_read, mem_atomic};

uint32_t world_alloc(struct host *h, uint32_t bytes)
{
	uint32_t off = h->brk + GUARD;

	h->brk = (uint32_t)bits_align_up(off + bytes, 64);
	if (h->brk + GUARD > WORLD_MEM)
		abort();
	return off;
}

/* ---- notes ---- */

void world_fail(struct world *w, const char *format, ...)
{
	va_list args;

	if (w->failure[0])
		return;
	va_start(args, format);
	vsnprintf(w->failure, sizeof w->failure, format, args);
	va_end(args);
}

void world_hash(struct world *w, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	while (bytes--)
		w->hash = (w->hash ^ *p++) * 0x100000001b3ull;
}

/* ---- frames in flight ---- */

static bool sooner(const struct flight *a, const struct flight *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void world_fly(struct world *w, struct flight *f)
{
	size_t i = w->flying++;

	f->order = w->order++;
	if (w->flying > w->room) {
		w->room = w->room ? w->room * 2 : 256;
		w->heap = realloc(w->heap, w->room * sizeof *w->heap);
		if (!w->heap)
			abort();
	}
	for (; i && sooner(f, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = f;
}

static struct flight *land(struct world *w)
{
	struct flight *first = w->heap[0], *last = w->heap[--w->flying];
	size_t i = 0, child;

	for (; (child = 2 * i + 1) < w->flying; i = child) {
		if (child + 1 < w->flying &&
		    sooner(w->heap[child + 1], w->heap[child]))
			child++;
		if (!sooner(w->heap[child], last))
			break;
		w->heap[i] = w->heap[child];
	}
	w->heap[i] = last;
	return first;
}

/* ---- hosts ---- */

static void host_init(struct world *w, uint32_t i, bool v4, uint64_t seed)
{
	struct host *h = &w->hosts[i];
	uint64_t secrets[4];
	struct engine_config config = {
		.hca = &h->hca,
		.seed = seed,
		.window = 16u << rng_below(&w->rng, 5),
		.patience_ns = 60 * SECOND,
	};
	struct arena arena;

	h->space.ops = &mem_ops;
	h->mem = calloc(3, WORLD_MEM);
	h->arena = calloc(1, ARENA_BYTES);
	if (!h->mem || !h->arena)
		abort();
	h->shadow = h->mem + WORLD_MEM;
	h->vague = h->shadow + WORLD_MEM;
	h->va = 0x7f0000000000ull + ((uint64_t)i << 36);
	if (v4)
		h->addr.ip[10] = h->addr.ip[11] = 0xff, h->addr.ip[12] = 10;
	else
		h->addr.ip[0] = 0xfd;
	h->addr.ip[15] = (uint8_t)(i + 1);
	h->addr.port = 4791;
	for (int k = 0; k < 4; k++)
		secrets[k] = rng_u64(&w->rng);
	arena_init(&arena, h->arena, ARENA_BYTES);
	if (hca_init(&h->hca, arena, &h->space, secrets))
		abort();
	h->engine = engine_new(&config, 0);
	if (!h->engine)
		abort();
}

void world_init(struct world *w, uint64_t seed, uint32_t loss_percent)
{
	static const uint32_t rates[] = {0, 1000, 30000, 200000};

	memset(w, 0, sizeof *w);
	w->hash = 0xcbf29ce484222325ull;
	rng_init(&w->rng, seed);
	w->faults.drop = loss_percent * 10000;
	w->faults.duplicate = rates[rng_below(&w->rng, 4)];
	w->faults.reorder = rates[rng_below(&w->rng, 4)];
	w->faults.corrupt = rates[rng_below(&w->rng, 4)];
	w->faults.truncate = rates[rng_below(&w->rng, 4)];
	for (uint32_t i = 0; i < WORLD_HOSTS; i++)
		host_init(w, i, seed & 1, seed + i);
	workload_init(w);
}

void world_fini(struct world *w)
{
	workload_fini(w);
	for (int i = 0; i < WORLD_HOSTS; i++) {
		engine_free(w->hosts[i].engine);
		free(w->hosts[i].arena);
		free(w->hosts[i].mem);
	}
	while (w->flying)
		free(w->heap[--w->flying]);
	free(w->heap);
}

/* The broker knows which QPs are alive. */
static void answer(struct world *w, struct host *h,
		   const struct engine_event *e)
{
	for (uint32_t i = 0; i < w->flow_count; i++) {
		struct flow *f = &w->flows[i];
		bool gone = w->flows[i ^ 1].qp->state == HCA_QP_ERR;

		if (f->from == h && f->qp->qpn == e->qpn)
			engine_peer_state(h->engine, e->qpn,
					  gone ? ENGINE_PEER_GONE
					       : ENGINE_PEER_ALIVE,
					  w->now_ns);
	}
}

static void take_events(struct world *w, struct host *h)
{
	struct engine_event events[BATCH];
	size_t n;

	while ((n = engine_events(h->engine, events, BATCH))) {
		for (size_t i = 0; i < n; i++) {
			world_hash(w, &events[i].type, sizeof events[i].type);
			if (events[i].type == ENGINE_ASK_PEER)
				answer(w, h, &events[i]);
		}
	}
}

/* All that the host has to say now; sometimes a socket takes only a part. */
static void pump(struct world *w, struct host *h)
{
	struct engine_frame frames[BATCH];
	size_t n;

	take_events(w, h);
	while ((n = engine_tx(h->engine, frames, BATCH, w->now_ns))) {
		if (rng_chance(&w->rng, 100000))
			n = rng_below(&w->rng, (uint32_t)n) + 1;
		for (size_t i = 0; i < n; i++)
			link_send(w, &frames[i]);
		engine_tx_done(h->engine, n);
		take_events(w, h);
	}
}

/* Would a socket give g behind f in one piece (UDP GRO)? */
static bool joins(const struct flight *f, const struct flight *g,
		  size_t segment)
{
	return g->at_ns <= f->at_ns && g->to_host == f->to_host &&
	       g->tos == f->tos && f->checksummed && g->checksummed &&
	       !memcmp(&g->from, &f->from, sizeof g->from) && g->len <= segment;
}

static void arrive(struct world *w)
{
	uint8_t bytes[BATCH * WORLD_FRAME_MAX];
	struct flight *f = land(w);
	size_t segment = f->len, len = 0;
	struct engine_dgram d = {.from = f->from,
				 .to = f->to,
				 .bytes = bytes,
				 .segment = segment,
				 .tos = f->tos,
				 .checksummed = f->checksummed};
	struct host *h = &w->hosts[f->to_host];

	for (;;) {
		bool whole = f->len == segment;

		memcpy(bytes + len, f->bytes, f->len);
		len += f->len;
		/* a shorter one ends the run */
		if (!whole || len + segment > sizeof bytes || !w->flying ||
		    !joins(f, w->heap[0], segment))
			break;
		free(f);
		f = land(w);
	}
	free(f);
	d.len = len;
	engine_rx(h->engine, &d, w->now_ns);
}

static void step(struct world *w)
{
	uint64_t next = w->app_ns;

	if (w->flying)
		next = bits_min_u64(next, w->heap[0]->at_ns);
	for (int i = 0; i < WORLD_HOSTS; i++)
		next = bits_min_u64(next, engine_deadline(w->hosts[i].engine));
	if (next > w->now_ns)
		w->now_ns = next;
	while (w->flying && w->heap[0]->at_ns <= w->now_ns)
		arrive(w);
	for (int i = 0; i < WORLD_HOSTS; i++)
		if (engine_deadline(w->hosts[i].engine) <= w->now_ns)
			engine_tick(w->hosts[i].engine, w->now_ns);
	if (w->app_ns <= w->now_ns) {
		workload_step(w);
		w->app_ns = w->now_ns +
			    (workload_is_posted(w) ? 100000 : 1000) +
			    rng_below(&w->rng, 20000);
	}
	for (int i = 0; i < WORLD_HOSTS; i++)
		pump(w, &w->hosts[i]);
}

static void stuck(struct world *w)
{
	struct flow *f = w->flows;

	while (f->next == f->ops_count && f + 1 < w->flows + w->flow_count)
		f++;
	world_fail(w,
		   "stuck: flow %u has %u of %u requests and %u of %u "
		   "receives done",
		   (uint32_t)(f - w->flows), f->next, f->ops_count,
		   f->recvs_next, f->recvs_count);
}

static void run_round(struct world *w)
{
	w->quiet_ns = w->now_ns + SECOND / 10;
	w->deadline_ns = w->quiet_ns + 100 * SECOND;
	w->cut_ns = UINT64_MAX;
	if (rng_chance(&w->rng, 300000))
		w->cut_ns = w->now_ns + rng_below(&w->rng, 1000000);
	while (!w->failure[0] && w->now_ns < w->cut_ns && !oracle_is_over(w)) {
		step(w);
		if (w->now_ns > w->deadline_ns)
			stuck(w);
	}
	if (!w->failure[0])
		oracle_memory(w);
}

void world_run(struct world *w)
{
	run_round(w);
	for (int i = 1; i < ROUNDS && !w->failure[0]; i++) {
		workload_restart(w);
		run_round(w);
	}
}
