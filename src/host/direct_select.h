/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's side of direct requests (direct/initiator.h): decides for each
 * connection between packets and the direct path, wakes targets, and decides
 * how seldom polls read the socket while all traffic goes through the arenas.
 * A connection goes direct if its peer is a local peer (local_peer.h).  A
 * connection goes by packets if its peer is no local peer, or if the answer
 * about the peer takes too long.  The broker gives that answer, except for a QP
 * by LID, for which the fabric gives it.  The path of a QP by LID is decided
 * again after a change of the subnet (engine_subnet); other paths are decided
 * once.
 *
 * Owner: struct progress.  Lock: the progress lock, except for
 * direct_select_may_skip, direct_select_is_quiet and direct_select_rested,
 * which need none.  The leader is the thread that waits (leader.h).
 */
#ifndef HOST_DIRECT_SELECT_H
#define HOST_DIRECT_SELECT_H

#include "engine/engine.h"
#include "util/shared.h"

struct direct_select {
	uint64_t look_ns;  /* when to look again for answers about peers */
	uint64_t heard_ns; /* when an answer about a peer was last found */
	/* Turns of progress in a row that received nothing. */
	uint32_t silent_turns;
	shared_flag is_quiet; /* all traffic goes through the arenas */
};

/* Initialises *w: no answer about a peer has been found yet, and no turn of
 * progress has ended. */
void direct_select_init(struct direct_select *w);
/* Looks for the local peer of each connection for which the engine has newly
 * asked for a path.  True: the path of at least one connection was decided. */
bool direct_select_find(struct engine *e);
/* Decides the paths of connections about whose peers an answer has come.  A
 * connection goes by packets if the answer takes too long. */
void direct_select_look(struct direct_select *w, struct engine *e,
			uint64_t now_ns);
/* Releases the local peers that no QP uses any more (local_peer_put). */
void direct_select_part(struct engine *e);
/* Wakes the local peers for which notify bits were set. */
void direct_select_wake(struct engine *e);
/* Called at the end of a turn of progress: releases local peers, repairs this
 * process's arena after the death of a peer (local_peer_note_death), and
 * decides whether all traffic goes through the arenas.  any: the turn received
 * something by the socket, by iWARP connections or by the link to a fabric. */
void direct_select_turned(struct direct_select *w, struct engine *e, bool any,
			  uint64_t now_ns);
/* Returns when direct_select_look is due without an event; UINT64_MAX:
 * never. */
uint64_t direct_select_look_ns(const struct engine *e, uint64_t now_ns);
/* Called when the leader is about to wait until *wake_ns: lowers *wake_ns if
 * progress is due earlier, and repairs this process's arena after the death of
 * a peer.  From here on, peers that set notify bits write the eventfd. */
void direct_select_rest(struct engine *e, uint64_t now_ns, uint64_t *wake_ns);
/* Called when the leader does not wait any more: from here on, peers need not
 * write the eventfd. */
void direct_select_rested(struct engine *e);
/* May this poll skip progress?  *skipped: how many polls of one object in a row
 * have skipped progress; this call updates the count. */
bool direct_select_may_skip(const struct direct_select *w,
			    const struct engine *e, shared_u32 *skipped);
/* Called when a poll was to make progress but could not take the post locks:
 * the next poll of the object makes progress, too. */
void direct_select_could_not(shared_u32 *skipped);
/* Does all traffic go through the arenas, so that polls look at the socket
 * seldom? */
static inline bool direct_select_is_quiet(const struct direct_select *w)
{
	return shared_load(&w->is_quiet);
}

#endif
