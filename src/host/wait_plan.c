/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/wait_plan.h"

#include <poll.h>

#include "host/broker_link.h"
#include "host/fabric_link.h"
#include "util/bits.h"

/*
 * Returns true if the rings of the link to a fabric have packets or are broken,
 * or if the link has a wake-up or a question for the fabric that the kernel had
 * no memory to send.  Otherwise makes the fabric wake the leader at the next
 * packet, and returns false.  The leader may have asked for that wake-up
 * before, but another thread may have received the message that was to wake the
 * leader.  While the engine is choked, returns false and does nothing.
 */
static bool has_ring_packets(const struct progress *p)
{
	return !engine_is_choked(p->engine) && !fabric_link_idle();
}

bool wait_plan_is_over(struct progress *p)
{
	return shared_load(&p->wake.is_resting) && p->wake.at_ns &&
	       ((p->tx.full_fd >= 0 && p->wake.awaited_fd != p->tx.full_fd) ||
		(p->wake.is_deaf && !engine_is_choked(p->engine)) ||
		progress_is_behind(p) || p->streams.got ||
		has_ring_packets(p) || engine_has_tx(p->engine) ||
		poll_policy_wants_service(&p->policy) ||
		p->wake.link_at != broker_link_changes() ||
		p->wake.streams_at != shared_own(&p->streams.waits_on) ||
		p->streams.due_ns < p->wake.at_ns ||
		direct_select_look_ns(p->engine, p->now_ns) < p->wake.at_ns ||
		engine_deadline(p->engine) < p->wake.at_ns);
}

void wait_plan_make(struct progress *p, struct progress_rest *r)
{
	struct progress_wake *w = &p->wake;
	bool is_behind = progress_is_behind(p);

	poll_policy_sleeps(&p->policy, is_behind);
	w->at_ns = is_behind || has_ring_packets(p)
			   ? 0
			   : engine_deadline(p->engine);
	w->at_ns = bits_min_u64(w->at_ns,
				poll_policy_serve(&p->policy, p->last_turn_ns));
	direct_select_rest(p->engine, p->last_turn_ns, &w->at_ns);
	if (engine_owes_look(p->engine))
		w->at_ns = bits_min_u64(w->at_ns,
					p->last_turn_ns + ENGINE_LOOK_AGAIN_NS);
	if (engine_owes(p->engine))
		w->at_ns = 0;
	w->at_ns = bits_min_u64(w->at_ns, p->streams.due_ns);
	engine_publish(p->engine);
	w->awaited_fd = p->tx.full_fd;
	if (!fabric_link_wants_room(p->tx.full_fd))
		w->at_ns = 0;
	w->is_deaf = engine_is_choked(p->engine);
	r->until = bits_min_u64(w->at_ns, broker_link_due_ns());
	r->events = (short)((p->tx.full_fd >= 0 ? POLLOUT : 0) |
			    (w->is_deaf ? 0 : POLLIN));
	r->serves = post_lock_serves(&p->posts, p->last_turn_ns);
	w->link_at = broker_link_changes();
	w->streams_at = shared_own(&p->streams.waits_on);
	shared_store(&w->is_resting, 1);
}
