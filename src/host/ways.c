/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/ways.h"

#include "host/neighbour.h"
#include "util/bits.h"

#define SILENCE_NS    1000000000u  /* of the broker's, and it is packets; */
#define WAIT_NS	      10000000000u /* or so long after the request */
#define LOOK_NS	      1000000
#define SILENT_TURNS  16
#define SKIPPED_TURNS 32

void ways_init(struct ways *w)
{
	w->look_ns = w->heard_ns = 0;
	w->silent_turns = 0;
	ring_store(&w->is_quiet, 0);
	ring_store(&w->skipped, 0);
}

/* False when the answer is yet to come. */
static bool find(struct engine *e, const struct engine_want *want)
{
	struct neighbour *n = NULL;

	switch (neighbour_get(want->peer_qpn, &n)) {
	case NEIGHBOUR_ASKED:
		return false;
	case NEIGHBOUR_HERE:
		if (!engine_way(e, want->qpn, n->hca, n->guest, n))
			neighbour_put(n);
		break;
	case NEIGHBOUR_NEVER:
		engine_way(e, want->qpn, NULL, NULL, NULL);
		break;
	}
	return true;
}

bool ways_find(struct engine *e)
{
	struct engine_want want;
	bool any = false;

	while (engine_wants_way(e, &want))
		any |= find(e, &want);
	return any;
}

/* Is that one to wait no more?  As long as the broker answers others, its turn
 * comes. */
static bool is_late(const struct ways *w, const struct engine_want *want,
		    uint64_t now_ns)
{
	uint64_t from = bits_max_u64(want->since_ns, w->heard_ns);

	return now_ns >= from + SILENCE_NS ||
	       now_ns >= want->since_ns + WAIT_NS;
}

void ways_look(struct ways *w, struct engine *e, uint64_t now_ns)
{
	struct engine_want want;

	if (neighbour_has_news())
		w->heard_ns = now_ns;
	else if (now_ns < w->look_ns)
		return;
	if (!engine_waits_for_way(e))
		return;
	w->look_ns = now_ns + LOOK_NS;
	engine_want_anew(e);
	while (engine_wants_way(e, &want)) {
		if (find(e, &want) || !is_late(w, &want, now_ns))
			continue;
		neighbour_give_up(want.peer_qpn);
		engine_way(e, want.qpn, NULL, NULL, NULL);
	}
}

void ways_part(struct engine *e)
{
	struct neighbour *n;

	while ((n = engine_parted(e)))
		neighbour_put(n);
}

void ways_kick(struct engine *e)
{
	struct neighbour *n;

	while ((n = engine_kick(e)))
		neighbour_kick(n);
}

void ways_turned(struct ways *w, struct engine *e, bool any, uint64_t now_ns)
{
	bool is_quiet, mourns = neighbour_mourn(now_ns);

	ways_part(e);
	w->silent_turns = any ? 0 : w->silent_turns + 1;
	is_quiet = engine_is_near(e) && w->silent_turns > SILENT_TURNS &&
		   !engine_has_tx(e) && !engine_waits_for_way(e) && !mourns;
	if (ring_own(&w->is_quiet) != is_quiet)
		ring_store(&w->is_quiet, is_quiet);
}

uint64_t ways_look_ns(const struct engine *e, uint64_t now_ns)
{
	return engine_waits_for_way(e) ? now_ns + LOOK_NS : UINT64_MAX;
}

void ways_rest(struct engine *e, uint64_t now_ns, uint64_t *wake_ns)
{
	*wake_ns = bits_min_u64(*wake_ns, ways_look_ns(e, now_ns));
	if (neighbour_mourn(now_ns))
		*wake_ns = bits_min_u64(*wake_ns, now_ns + LOOK_NS);
	/* a letter that came before is seen here, a later one kicks */
	engine_asleep(e, true);
	if (engine_has_mail(e))
		*wake_ns = 0;
}

void ways_rested(struct engine *e)
{
	engine_asleep(e, false);
}

bool ways_may_skip(struct ways *w, const struct engine *e)
{
	uint32_t skipped = ring_own(&w->skipped);

	if (!ways_is_quiet(w) || engine_has_mail(e) ||
	    skipped >= SKIPPED_TURNS) {
		ring_store(&w->skipped, 0);
		return false;
	}
	ring_store(&w->skipped, skipped + 1);
	return true;
}
