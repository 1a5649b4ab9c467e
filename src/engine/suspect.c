/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/suspect.h"

#include <string.h>

#include "engine/inside.h"

void engine_suspects_init(struct suspects *s, struct engine_suspect *rows)
{
	memset(s, 0, sizeof(*s));
	s->rows = rows;
}

static uint32_t hash_qpn(uint32_t qpn)
{
	return (qpn * 0x9e3779b1u) >> 18 & (SUSPECT_QPNS - 1);
}

void engine_suspects_has_qpn(struct suspects *s, uint32_t qpn)
{
	s->had[hash_qpn(qpn) / 64] |= 1ull << hash_qpn(qpn) % 64;
}

bool engine_suspects_had_qpn(const struct suspects *s, uint32_t qpn)
{
	return s->had[hash_qpn(qpn) / 64] >> hash_qpn(qpn) % 64 & 1;
}

static bool is_row_of(const struct engine_suspect *r,
		      const struct suspect_from *f)
{
	return r->weight && r->user == f->user && r->is_local == f->is_local &&
	       inaddr_has_same_ip(r->ip, f->ip);
}

/* Returns the index of the row of f's address and user; ENGINE_SUSPECTS: there
 * is no such row. */
static uint32_t row_of(const struct suspects *s, const struct suspect_from *f)
{
	uint32_t i = 0;

	if (is_row_of(&s->rows[s->latest], f))
		return s->latest;
	while (i < ENGINE_SUSPECTS && !is_row_of(&s->rows[i], f))
		i++;
	return i;
}

static uint32_t lightest_row(const struct suspects *s)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < ENGINE_SUSPECTS; i++)
		if (s->rows[i].weight < s->rows[least].weight)
			least = i;
	return least;
}

static uint32_t take_row(struct suspects *s, const struct suspect_from *f)
{
	uint32_t i = lightest_row(s);
	uint64_t weight = s->rows[i].weight;

	s->due -= s->of[i].is_due;
	s->of[i] = (struct suspect){.inherited = weight};
	s->rows[i] = (struct engine_suspect){
		.is_local = f->is_local, .user = f->user, .weight = weight};
	memcpy(s->rows[i].ip, f->ip, 16);
	return i;
}

static void begin_interval(struct suspect *o, uint64_t now_ns)
{
	if (o->since_ns && now_ns - o->since_ns < SUSPECT_NS)
		return;
	o->since_ns = now_ns;
	o->recent = o->passed = 0;
}

/* Counts a sign of row i. */
static void count_sign(struct suspects *s, uint32_t i, enum engine_sign sign,
		       uint64_t now_ns)
{
	struct suspect *o = &s->of[i];
	struct engine_suspect *r = &s->rows[i];

	s->latest = i;
	begin_interval(o, now_ns);
	o->recent++;
	r->weight++;
	r->signs[sign]++;
	if (o->recent >= SUSPECT_MANY || now_ns < o->until_ns)
		s->until_ns = o->until_ns = now_ns + SUSPECT_NS;
	if (o->is_reported || o->is_due ||
	    (o->recent < SUSPECT_MANY &&
	     r->weight - o->inherited < SUSPECT_REPORTED))
		return;
	o->is_due = true;
	s->due++;
}

void engine_suspects_note(struct suspects *s, const struct suspect_from *from,
			  enum engine_sign sign, uint64_t now_ns)
{
	uint32_t i = row_of(s, from);

	count_sign(s, i < ENGINE_SUSPECTS ? i : take_row(s, from), sign,
		   now_ns);
}

bool engine_suspects_drops(struct suspects *s, const struct suspect_from *from,
			   enum engine_sign sign, uint64_t now_ns)
{
	uint32_t i = row_of(s, from);

	if (i == ENGINE_SUSPECTS || now_ns >= s->of[i].until_ns)
		return false;
	begin_interval(&s->of[i], now_ns);
	if (s->of[i].passed < SUSPECT_PASS) {
		s->of[i].passed++;
		return false; /* engine_suspects_note may count the sign */
	}
	count_sign(s, i, sign, now_ns);
	s->rows[i].dropped++;
	return true;
}

bool engine_suspect(struct engine *e, struct engine_suspect *who)
{
	struct suspects *s = &e->suspects;

	for (uint32_t i = 0; s->due && i < ENGINE_SUSPECTS; i++) {
		if (!s->of[i].is_due)
			continue;
		s->of[i].is_due = false;
		s->of[i].is_reported = true;
		s->due--;
		*who = s->rows[i];
		return true;
	}
	return false;
}
