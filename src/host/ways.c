/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/ways.h"

#include "host/neighbour.h"
#include "util/bits.h"

#define WAIT_NS	      1000000000 /* for an answer: without one, packets */
#define LOOK_NS	      1000000
#define SILENT_TURNS  16
#define SKIPPED_TURNS 32

void ways_init(struct ways *w)
{
	w->until_ns = 0;
	w->silent_turns = 0;
	ring_store(&w->is_quiet, 0);
	ring_store(&w->skipped, 0);
}

/* False when the answer is yet to come. */
static bool find(struct ways *w, struct engine *e, uint32_t qpn, uint32_t peer,
		 uint64_t now_ns)
{
	struct neighbour *n = NULL;
	enum neighbour_is is = neighbour_get(peer, &n);

	if (is == NEIGHBOUR_ASKED && !w->until_ns)
		w->until_ns = now_ns + WAIT_NS;
	if (is == NEIGHBOUR_ASKED && now_ns < w->until_ns)
		return false;
	w->until_ns = 0;
	if (is != NEIGHBOUR_HERE)
		engine_way(e, qpn, NULL, NULL, NULL);
	else if (!engine_way(e, qpn, n->hca, n->guest, n))
		neighbour_put(n);
	return true;
}

bool ways_find(struct ways *w, struct engine *e, uint64_t now_ns)
{
	uint32_t qpn, peer;
	bool any = false;

	while ((qpn = engine_wants_way(e, &peer))) {
		if (!find(w, e, qpn, peer, now_ns))
			return any;
		any = true;
	}
	w->until_ns = 0; /* who was waited for may have gone */
	return any;
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

void ways_turned(struct ways *w, struct engine *e, bool any)
{
	bool is_quiet, mourns = neighbour_mourn();

	ways_part(e);
	w->silent_turns = any ? 0 : w->silent_turns + 1;
	is_quiet = engine_is_near(e) && w->silent_turns > SILENT_TURNS &&
		   !engine_has_tx(e) && !w->until_ns && !mourns;
	if (ring_own(&w->is_quiet) != is_quiet)
		ring_store(&w->is_quiet, is_quiet);
}

void ways_rest(const struct ways *w, struct engine *e, uint64_t now_ns,
	       uint64_t *wake_ns)
{
	if (w->until_ns || neighbour_mourn())
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
