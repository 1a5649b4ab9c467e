/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's side of requests without packets (direct/initiator.h): decides
 * once for each connection between packets and the direct path, wakes targets,
 * and decides how seldom the socket is read while peers write to this process's
 * arena themselves.  A connection goes direct if its peer is a local peer
 * (local_peer.h), and by packets if it is not, or if the answer takes too long.
 *
 * Owner: struct progress.  Lock: the progress lock, but for
 * direct_select_may_skip and direct_select_is_quiet.
 */
#ifndef HOST_DIRECT_SELECT_H
#define HOST_DIRECT_SELECT_H

#include "engine/engine.h"
#include "util/shared.h"

struct direct_select {
	uint64_t look_ns;      /* when to look again for the broker's answers */
	uint64_t heard_ns;     /* when the broker answered last */
	uint32_t silent_turns; /* turns in a row without a datagram */
	shared_flag is_quiet;  /* all traffic comes through the arena */
};

/* Starts with no answer and no turn. */
void direct_select_init(struct direct_select *w);
/* Serves the engine's new questions.  True: one was answered at once. */
bool direct_select_find(struct engine *e);
/* Serves the broker's answers; a connection whose answer takes too long goes by
 * packets. */
void direct_select_look(struct direct_select *w, struct engine *e,
			uint64_t now_ns);
/* Gives back the local peers that no QP uses any more. */
void direct_select_part(struct engine *e);
/* Wakes the local peers for which notify bits were set. */
void direct_select_kick(struct engine *e);
/* A turn of progress has ended; @any: datagrams came. */
void direct_select_turned(struct direct_select *w, struct engine *e, bool any,
			  uint64_t now_ns);
/* When progress is due at the latest without a wake-up; UINT64_MAX: never. */
uint64_t direct_select_look_ns(const struct engine *e, uint64_t now_ns);
/* The leader is about to wait until *wake_ns, which this call may make earlier;
 * peers that set notify bits write the eventfd from here on. */
void direct_select_rest(struct engine *e, uint64_t now_ns, uint64_t *wake_ns);
/* The leader does not wait any more: peers need not write the eventfd. */
void direct_select_rested(struct engine *e);
/* May this poll do without progress?  *skipped counts how many polls of one
 * object in a row did; this call renews it. */
bool direct_select_may_skip(const struct direct_select *w,
			    const struct engine *e, shared_u32 *skipped);
/* Does all traffic come through the arena? */
static inline bool direct_select_is_quiet(const struct direct_select *w)
{
	return shared_load(&w->is_quiet);
}

#endif
