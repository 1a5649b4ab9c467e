/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/direct_select.h"

#include "fabric/reach_qp.h"
#include "host/broker_link.h"
#include "host/fabric_link.h"
#include "host/local_peer.h"
#include "util/bits.h"

/* The path of a connection depends on what the broker (for a QP by LID: the
 * fabric) answers about the peer.  The connection goes by packets if
 * local_peer_has_news reports no answer about any peer for SILENCE_NS, or if no
 * answer about this peer comes for WAIT_NS.  For a QP by LID, WAIT_NS alone
 * counts: the packets would need the fabric, too. */
#define SILENCE_NS 1000000000u
#define WAIT_NS	   10000000000u
#define LOOK_NS	   1000000 /* between two looks for answers or deaths */
/* If more turns in a row than this have received nothing, polls may skip
 * progress. */
#define SILENT_TURNS 16
/* Polls between looks at the socket.  A look takes about as long as a SEND of
 * few bytes to a peer, and delays a SEND that arrives meanwhile. */
#define SKIPPED_TURNS 128

void direct_select_init(struct direct_select *w)
{
	w->look_ns = w->heard_ns = 0;
	w->silent_turns = 0;
	shared_store(&w->is_quiet, 0);
}

/* Asks the fabric about a connection by LID.  LINK_REACH_YES: tells the engine
 * what the fabric says, and stores the number of the peer's process in
 * *class. */
static enum link_reach_is
ask_fabric(struct engine *e, const struct engine_want *want, uint32_t *class)
{
	const struct link_reach_about about = {
		.qpn = want->qpn,
		.port = want->by_lid->port_num,
		.since_ns = want->since_ns,
		.packets = reach_of_qp(want->by_lid)};
	struct fabric_reached r;
	enum link_reach_is is = fabric_link_reach(&about, &r);
	struct hca_way way;

	if (is != LINK_REACH_YES)
		return is;
	way = reach_way(&r.peer, r.changes);
	engine_set_way(e, want->qpn, &way);
	*class = r.program;
	return is;
}

static void choose_packets(struct engine *e, const struct engine_want *want)
{
	engine_set_path(e, want->qpn, NULL, NULL, NULL, false);
}

/* Decides the path of a connection.  False: the broker, or the fabric, has not
 * answered yet. */
static bool find_path(struct engine *e, const struct engine_want *want)
{
	uint32_t class = 0;
	struct local_peer *n = NULL;

	if (!want->by_lid) {
		class = broker_link_class(want->peer_qpn);
	} else {
		switch (ask_fabric(e, want, &class)) {
		case LINK_REACH_ASKED:
			return false;
		case LINK_REACH_NO:
			choose_packets(e, want);
			return true;
		case LINK_REACH_YES:
			break;
		}
	}
	switch (local_peer_get(class, want->post_lock, &n)) {
	case LOCAL_PEER_ASKED:
		return false;
	case LOCAL_PEER_HERE:
		if (!engine_set_path(e, want->qpn, n->hca, n->access, n,
				     n->is_apart || !want->post_lock))
			local_peer_put(n);
		break;
	case LOCAL_PEER_NEVER:
		choose_packets(e, want);
		break;
	}
	return true;
}

bool direct_select_find(struct engine *e)
{
	struct engine_want want;
	bool any = false;

	while (engine_wants_path(e, &want))
		any |= find_path(e, &want);
	return any;
}

/* Has a connection waited too long for the answer about its peer?  While other
 * answers come, this one may still come, too. */
static bool is_late(const struct direct_select *w,
		    const struct engine_want *want, uint64_t now_ns)
{
	uint64_t from = bits_max_u64(want->since_ns, w->heard_ns);

	return (!want->by_lid && now_ns >= from + SILENCE_NS) ||
	       now_ns >= want->since_ns + WAIT_NS;
}

void direct_select_look(struct direct_select *w, struct engine *e,
			uint64_t now_ns)
{
	struct engine_want want;

	if (local_peer_has_news())
		w->heard_ns = now_ns;
	else if (now_ns < w->look_ns)
		return;
	if (!engine_waits_for_path(e))
		return;
	w->look_ns = now_ns + LOOK_NS;
	engine_want_path_again(e);
	while (engine_wants_path(e, &want)) {
		if (find_path(e, &want) || !is_late(w, &want, now_ns))
			continue;
		if (!want.by_lid)
			local_peer_give_up(broker_link_class(want.peer_qpn));
		choose_packets(e, &want);
	}
}

void direct_select_part(struct engine *e)
{
	struct local_peer *n;

	while ((n = engine_released(e)))
		local_peer_put(n);
}

void direct_select_wake(struct engine *e)
{
	struct local_peer *n;

	while ((n = engine_wants_wake(e)))
		local_peer_wake(n);
}

void direct_select_turned(struct direct_select *w, struct engine *e, bool any,
			  uint64_t now_ns)
{
	bool is_quiet, is_repairing = local_peer_note_death(now_ns);

	direct_select_part(e);
	w->silent_turns = any ? 0 : w->silent_turns + 1;
	is_quiet = engine_is_direct(e) && w->silent_turns > SILENT_TURNS &&
		   !engine_has_tx(e) && !engine_waits_for_path(e) &&
		   !is_repairing;
	if (shared_own(&w->is_quiet) != is_quiet)
		shared_store(&w->is_quiet, is_quiet);
}

uint64_t direct_select_look_ns(const struct engine *e, uint64_t now_ns)
{
	return engine_waits_for_path(e) ? now_ns + LOOK_NS : UINT64_MAX;
}

void direct_select_rest(struct engine *e, uint64_t now_ns, uint64_t *wake_ns)
{
	*wake_ns = bits_min_u64(*wake_ns, direct_select_look_ns(e, now_ns));
	if (local_peer_note_death(now_ns))
		*wake_ns = bits_min_u64(*wake_ns, now_ns + LOOK_NS);
	/* engine_asleep orders its store of is_asleep before the load of
	 * engine_has_notify.  So this load sees a bit that a peer set before
	 * that store.  A peer that sets a bit later sees is_asleep, and wakes
	 * this process.  Without this order the leader could sleep although a
	 * bit is set. */
	engine_asleep(e, true);
	if (engine_has_notify(e))
		*wake_ns = 0;
}

void direct_select_rested(struct engine *e)
{
	engine_asleep(e, false);
}

bool direct_select_may_skip(const struct direct_select *w,
			    const struct engine *e, shared_u32 *skipped)
{
	uint32_t count = shared_own(skipped);

	if (!direct_select_is_quiet(w) || engine_has_notify(e) ||
	    count >= SKIPPED_TURNS) {
		shared_store(skipped, 0);
		return false;
	}
	shared_store(skipped, count + 1);
	return true;
}

void direct_select_could_not(shared_u32 *skipped)
{
	shared_store(skipped, SKIPPED_TURNS);
}
