/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/shm_ack.h"
#include "sim/bytestream.h"
#include "sim/link.h"
#include "sim/pair.h"
#include "sim/subnet.h"
#include "util/bits.h"

#define ARENA_BYTES (32u << 20)
#define GUARD	    4096u	    /* bytes between two allocations */
#define BATCH	    16		    /* frames or events of one call */
#define LOOK_NS	    2000	    /* until the next turn while an ACK waits */
#define ASLEEP_NS   (10 * WORLD_MS) /* a longer delay counts as a sleep */
#define PATIENCE_NS 60000000000ull  /* the engine's, with a silent peer */
#define OWNER_DIED  0x40000000u	    /* FUTEX_OWNER_DIED of linux/futex.h */

/* ---- memory ---- */

uint32_t node_alloc(struct host *h, uint32_t bytes)
{
	uint32_t off = (uint32_t)h->memory.size + GUARD;

	h->memory.size = bits_align_up(off + bytes, 64);
	if (h->memory.size + GUARD > WORLD_MEM)
		abort();
	return off;
}

/* ---- processes ---- */

void node_init(struct world *w, uint8_t index, bool v4, uint8_t *mem)
{
	struct host *h = &w->hosts[index];

	h->world = w;
	h->index = index;
	if (!mem)
		mem = calloc(2, WORLD_MEM);
	if (!mem)
		abort();
	memory_init(&h->memory, mem,
		    0x7f0000000000ull + ((uint64_t)index << 36), 0);
	h->shadow = h->memory.bytes + WORLD_MEM;
	if (v4)
		h->addr.ip[10] = h->addr.ip[11] = 0xff, h->addr.ip[12] = 10;
	else
		h->addr.ip[0] = 0xfd;
	h->addr.ip[15] = (uint8_t)(index + 1);
	h->addr.port = 4791;
	h->skew_ns = rng_u64(&w->rng) >> 20;
	h->qpns = 0x11 + 0x100u * index;
	node_boot(h);
}

/* node_init puts the host's index into bits 8 and up of its QPNs. */
static uint32_t class_of(uint32_t qpn)
{
	return qpn >> 8;
}

/* Opens a page for ACKs in shared memory.  Its capacity 0 means unlimited
 * credit. */
static void open_shm_ack(struct host *h)
{
	memset(&h->page, 0, sizeof(h->page));
	h->page.generation = h->starts + 1;
	engine_inbox(h->engine, &h->page, h->index, 0, false);
	shm_ack_open(engine_shm_ack(h->engine), &h->page);
}

/* Makes the process of h, with an arena of zeroes. */
static void make_process(struct host *h)
{
	struct process *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->host = h;
	p->arena = calloc(1, ARENA_BYTES);
	if (!p->arena)
		abort();
	h->process = p;
}

/* Makes the adapter of h reachable by other hosts. */
static void open_process(struct host *h)
{
	struct process *p = h->process;
	bool has_atomics = h->world->kind.has_atomics;

	memory_elsewhere(&p->elsewhere, &h->memory, h->world->kind.is_mapped);
	p->view = h->hca;
	if (!has_atomics)
		p->view.space = &p->elsewhere.space;
	for (int i = 0; i < WORLD_HOSTS && !has_atomics; i++)
		p->accesses[i] = access_claim(&p->view);
	h->hca.shared->pulse.word = 1;
}

/* Frees a process that has ended, once no queue pair refers to it. */
static void free_process(struct process *p)
{
	if (p->users || !p->has_ended)
		return;
	free(p->arena);
	free(p);
}

/* Sets the bit by which the kernel marks the robust lock of a dead process
 * (get_robust_list(2)): hca_is_alive is false from here on. */
static void end_process(struct host *h)
{
	struct process *p = h->process;

	h->hca.shared->pulse.word |= OWNER_DIED;
	h->process = NULL;
	p->has_ended = true;
	free_process(p);
}

/* Releases the processes that queue pairs of h no longer refer to. */
static void free_released(struct host *h)
{
	struct process *p;

	while ((p = engine_released(h->engine))) {
		p->users--;
		free_process(p);
	}
}

void node_boot(struct host *h)
{
	struct world *w = h->world;
	struct engine_config config = {
		.hca = &h->hca,
		.window = 16u << rng_below(&w->rng, 5),
		.strict = w->strict,
		.patience_ns = PATIENCE_NS,
		.direct = w->kind.direct,
		.piece = w->kind.direct ? 4096 : 0,
		.asks_sources = w->kind.sources,
		.without = h->without,
	};
	uint64_t secrets[4];
	struct arena arena;

	for (int k = 0; k < 4; k++)
		secrets[k] = rng_u64(&w->rng);
	make_process(h);
	arena_init(&arena, h->process->arena, ARENA_BYTES);
	if (hca_init(&h->hca, arena, &h->memory.space, secrets))
		abort();
	if (w->kind.has_shm_ack)
		config.class_of = class_of;
	h->engine = engine_new(&config, node_now(h));
	if (!h->engine)
		abort();
	if (w->kind.has_shm_ack)
		open_shm_ack(h);
	open_process(h);
	engine_asleep(h->engine, true);
	h->woken.by_peer = h->woken.writable = false;
	h->woken.ports = 0;
	h->source_count = 0;
	h->arena_used = arena_used(&h->hca.arena);
	h->turned_ns = node_now(h);
	h->dead = false;
	h->starts++;
	if (w->subnet)
		subnet_attach(h);
}

void node_kill(struct host *h)
{
	if (!engine_is_idle(h->engine))
		world_fail(h->world, "host %u: packets or timers are left",
			   h->index);
	if (arena_used(&h->hca.arena) != h->arena_used)
		world_fail(h->world, "host %u: arena memory is left", h->index);
	free_released(h);
	if (h->world->subnet)
		subnet_detach(h);
	engine_free(h->engine);
	end_process(h);
	while (h->inbox_count)
		free(h->inbox[--h->inbox_count]);
	h->engine = NULL;
	h->dead = true;
}

void node_fini(struct host *h)
{
	if (!h->dead)
		node_kill(h);
	memset(h->memory.bytes, 0, h->memory.size + GUARD);
	memset(h->shadow, 0, h->memory.size + GUARD);
}

uint64_t node_now(const struct host *h)
{
	return h->world->now_ns + h->skew_ns;
}

bool node_is_up(const struct host *h)
{
	return !h->dead && h->stalled_ns <= h->world->now_ns;
}

/* ---- the progress loop ---- */

/* Would UDP GRO append g to f? */
static bool can_join(const struct flight *f, const struct flight *g)
{
	return g->tos == f->tos && f->checksummed && g->checksummed &&
	       !memcmp(&g->from, &f->from, sizeof(g->from)) && g->len <= f->len;
}

/* Answers the engine's questions about source ports: each port but
 * WORLD_INTRUDER belongs to the peer. */
static void tell_sources(struct host *h)
{
	while (h->source_count) {
		const struct engine_source *s = &h->sources[--h->source_count];

		engine_source(h->engine, s, s->from.port != WORLD_INTRUDER,
			      node_now(h));
	}
}

/* Takes the engine's questions about source ports; the answers follow now or in
 * a later turn. */
static void find_sources(struct host *h)
{
	struct engine_source s;

	while (engine_wants_source(h->engine, &s)) {
		if (h->source_count == WORLD_SOURCES)
			tell_sources(h);
		h->sources[h->source_count++] = s;
	}
	if (rng_chance(&h->world->rng, 500000))
		tell_sources(h);
}

/* Delivers the frame at inbox[i] with the frames that GRO appends; returns the
 * index of the next frame. */
static uint32_t deliver_run(struct host *h, uint32_t i)
{
	uint8_t bytes[BATCH * WORLD_FRAME_MAX];
	const struct flight *f = h->inbox[i], *g = f;
	struct engine_dgram d = {.from = f->from,
				 .to = f->to,
				 .bytes = bytes,
				 .segment = f->len,
				 .tos = f->tos,
				 .local = h->world->kind.sources};

	do {
		memcpy(bytes + d.len, g->bytes, g->len);
		d.len += g->len;
		/* a shorter frame ends the run */
		if (++i == h->inbox_count || g->len != f->len)
			break;
		g = h->inbox[i];
	} while (d.len + f->len <= sizeof(bytes) && can_join(f, g));
	engine_rx(h->engine, &d, node_now(h));
	if (h->world->kind.sources)
		find_sources(h);
	return i;
}

static void deliver_by_lid(struct host *h, const struct flight *f)
{
	struct engine_packet p = {
		.bytes = f->bytes, .len = f->len, .port = f->port};

	engine_rx_link(h->engine, &p, node_now(h));
}

static void receive_all(struct host *h)
{
	const struct subnet *subnet = h->world->subnet;

	for (uint32_t i = 0; i < h->inbox_count;)
		if (subnet)
			deliver_by_lid(h, h->inbox[i++]);
		else
			i = deliver_run(h, i);
	while (h->inbox_count)
		free(h->inbox[--h->inbox_count]);
	if (subnet)
		subnet_resume(h);
}

void node_receive(struct host *h, struct flight *f)
{
	if (h->inbox_count == WORLD_INBOX && node_is_up(h))
		receive_all(h);
	if (h->dead || h->inbox_count == WORLD_INBOX ||
	    h->unplugged_ns > h->world->now_ns) {
		free(f);
		return;
	}
	h->inbox[h->inbox_count++] = f;
}

/* Notes the event of a CQ.  The world fails if no event was requested. */
static void fire_event(struct host *h, const struct engine_event *e)
{
	struct tap *t = &h->taps[e->user];

	if (!t->armed)
		world_fail(h->world, "host %u: an unarmed CQ fires", h->index);
	t->armed = false;
	t->fired = true;
}

static void take_events(struct host *h)
{
	struct engine_event events[BATCH];
	struct world *w = h->world;
	size_t n;

	while ((n = engine_events(h->engine, events, BATCH))) {
		for (size_t i = 0; i < n; i++) {
			const struct engine_event *e = &events[i];

			world_hash(w, &e->type, sizeof(e->type));
			if (e->type == ENGINE_ASK_PEER)
				world_ask(w, h, e);
			else if (e->type == ENGINE_CQ_EVENT)
				fire_event(h, e);
			else if (e->type == ENGINE_CQ_ERR)
				world_fail(w, "host %u: a CQ overruns",
					   h->index);
			else if (e->type == ENGINE_SQ_DRAINED)
				pair_drained(w, h, e->qpn);
		}
	}
}

/* Returns the host to which a QP's requests may go direct; NULL: they may not.
 */
static struct host *find_peer(struct host *h, const struct engine_want *want)
{
	struct flow *f;

	if (h->world->subnet)
		return subnet_ask(h, want);
	f = pair_flow_of(h->world, h, want->qpn);
	return f ? f->to : NULL;
}

/* Answers the engine's questions for paths: nine connections in ten are direct,
 * and one in ten uses packets.  By LID, one answer in four comes in a later
 * turn. */
static void find_paths(struct host *h)
{
	struct world *w = h->world;
	struct engine_want want;

	if (w->subnet && engine_waits_for_path(h->engine))
		engine_want_path_again(h->engine);
	while (engine_wants_path(h->engine, &want)) {
		struct process *p = NULL;
		struct host *to;

		if (w->subnet && rng_chance(&w->rng, 250000)) {
			h->woken.writable = true;
			continue;
		}
		to = find_peer(h, &want);
		if (to && !to->dead && rng_chance(&w->rng, 900000))
			p = to->process;
		if (engine_set_path(h->engine, want.qpn, p ? &p->view : NULL,
				    p ? p->accesses[h->index] : NULL, p,
				    true) &&
		    p)
			p->users++;
	}
}

void node_wake(void *process)
{
	struct process *to = process;

	if (!to->has_ended)
		to->host->woken.by_peer = true;
}

static void wake_targets(struct host *h)
{
	struct process *to;

	while ((to = engine_wants_wake(h->engine)))
		node_wake(to);
}

/* Answers the engine's question for the page of a QP's process. */
static void find_pages(struct host *h)
{
	uint32_t qpn = engine_wants_page(h->engine);

	if (qpn)
		engine_page(h->engine, qpn,
			    &h->world->hosts[class_of(qpn) % WORLD_HOSTS].page);
}

/* Sends frames of the engine until none is left or the subnet has no room.  One
 * batch in ten is cut to a random number of its frames, at least one. */
static void send_all(struct host *h)
{
	struct engine_frame frames[BATCH];
	struct world *w = h->world;
	bool is_full;
	size_t n;

	take_events(h);
	do {
		n = engine_tx(h->engine, frames, BATCH, node_now(h));
		if (n && rng_chance(&w->rng, 100000))
			n = rng_below(&w->rng, (uint32_t)n) + 1;
		is_full = w->subnet && n && !subnet_may_send(h);
		if (is_full)
			n = 0;
		for (size_t i = 0; i < n; i++)
			link_send(w, h, &frames[i]);
		engine_tx_done(h->engine, n);
		bytestream_send(h);
		wake_targets(h);
		find_paths(h);
		find_pages(h);
		take_events(h);
	} while (engine_has_tx(h->engine) && !is_full);
}

uint64_t node_next(const struct host *h)
{
	uint64_t due;

	if (h->dead)
		return UINT64_MAX;
	if (!node_is_up(h))
		return h->stalled_ns;
	if (h->inbox_count || h->woken.by_peer || h->source_count ||
	    h->woken.writable || h->woken.ports)
		return 0;
	due = engine_deadline(h->engine);
	/* only hosts with an odd index wake for an ACK in shared memory */
	if (engine_owes(h->engine) ||
	    (h->index % 2 && shm_ack_has_news(engine_shm_ack(h->engine))))
		due = bits_min_u64(due, h->turned_ns + LOOK_NS);
	if (due != UINT64_MAX)
		due -= bits_min_u64(due, h->skew_ns);
	return bits_min_u64(due, bytestream_next(h));
}

void node_turn(struct host *h)
{
	uint64_t now = node_now(h), due;
	bool slept;

	if (!node_is_up(h))
		return;
	due = engine_deadline(h->engine);
	slept = due < now && now - due > ASLEEP_NS &&
		now - h->turned_ns > ASLEEP_NS;
	if (slept)
		engine_was_asleep(h->engine,
				  bits_min_u64(now - due, now - h->turned_ns),
				  now);
	tell_sources(h);
	if (h->woken.ports)
		subnet_tell_ports(h);
	h->woken.ports = 0;
	/* ACKs in shared memory are held for one turn */
	engine_hold_acks(h->engine,
			 h->world->kind.has_shm_ack && !engine_owes(h->engine));
	shm_ack_look(engine_shm_ack(h->engine), now);
	receive_all(h);
	h->woken.writable = false;
	bytestream_receive(h);
	if (h->woken.by_peer)
		engine_serve_notify(h->engine);
	h->woken.by_peer = false;
	if (engine_deadline(h->engine) <= now)
		engine_tick(h->engine, now);
	send_all(h);
	free_released(h);
	h->turned_ns = now;
}
