/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/link.h"

#include <stdlib.h>
#include <string.h>

#include "util/bits.h"

#define WIRE_NS	 5000
#define LATE_NS	 300000
#define NUDGE_NS 500

/* Damage one copy; false when nothing of it arrives. */
static bool damage(struct world *w, struct flight *f)
{
	if (rng_chance(&w->rng, w->faults.drop))
		return false;
	if (rng_chance(&w->rng, w->faults.corrupt)) {
		uint32_t bit = rng_below(&w->rng, (uint32_t)f->len * 8);

		/* a UDP checksum would have caught it */
		if (rng_chance(&w->rng, 500000))
			return false;
		f->bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		/* not covered by the ICRC: FECN, BECN, reserved */
		if (bit / 8 == 4)
			return false;
		f->checksummed = false;
	}
	if (rng_chance(&w->rng, w->faults.truncate)) {
		f->len = rng_below(&w->rng, (uint32_t)f->len) + 1;
		f->checksummed = false;
	}
	return true;
}

static void send_copy(struct world *w, const struct engine_frame *f)
{
	struct flight *c = malloc(sizeof *c);
	bool clean = w->now_ns >= w->quiet_ns;

	if (!c || f->len > sizeof c->bytes)
		abort();
	c->from = f->from;
	c->to = f->to;
	c->tos = f->tos;
	c->to_host = !memcmp(f->to.ip, w->hosts[1].addr.ip, 16);
	c->checksummed = true;
	c->len = f->len;
	memcpy(c->bytes, f->bytes, f->len);
	c->at_ns = w->now_ns + WIRE_NS;
	if (!clean && !damage(w, c)) {
		free(c);
		return;
	}
	if (!clean && rng_chance(&w->rng, w->faults.reorder))
		c->at_ns += rng_below(&w->rng, LATE_NS);
	else if (!clean && rng_chance(&w->rng, w->faults.reorder))
		c->at_ns += rng_below(&w->rng, NUDGE_NS);
	world_fly(w, c);
}

static void send_one(struct world *w, const struct engine_frame *f)
{
	int copies = 1;

	world_hash(w, &w->now_ns, sizeof w->now_ns);
	world_hash(w, f->bytes, f->len);
	if (w->now_ns < w->quiet_ns && rng_chance(&w->rng, w->faults.duplicate))
		copies = 2;
	while (copies--)
		send_copy(w, f);
}

/* A wire carries packets, whatever a socket would take in one call. */
void link_send(struct world *w, const struct engine_frame *f)
{
	struct engine_frame one = *f;

	for (size_t off = 0; off < f->len; off += f->segment) {
		one.bytes = f->bytes + off;
		one.len = bits_min_u64(f->segment, f->len - off);
		one.segment = one.len;
		send_one(w, &one);
	}
}
