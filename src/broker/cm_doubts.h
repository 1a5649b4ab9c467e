/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doubts.  A REQ of a peer on another host may say that the peer has lost its
 * connection with a user of this broker.  The peer is doubted until its host
 * has said whether the peer's queue pair lives.  A user has at most a share of
 * the places (share.h).  Part of the broker's loop: one thread, no lock.
 */
#ifndef BROKER_CM_DOUBTS_H
#define BROKER_CM_DOUBTS_H

#include "broker/share.h"
#include "cm/live.h"

#include <stdbool.h>
#include <stdint.h>

/* Peers that are doubted at once: as many as one asker may have questions. */
#define CM_DOUBTS_MAX LIVE_OF_ONE

/* All zeroes: nobody is doubted. */
struct cm_doubts {
	struct {
		struct user_share *share; /* NULL: the place is free */
		struct live_peer about;
		bool is_taken; /* by cm_doubts_take */
	} place[CM_DOUBTS_MAX];
	uint32_t used; /* how many of place[] are used */
};

/* Adds a doubt about a peer of the share's user, if the user may have another
 * one; otherwise does nothing, and the peer's next REQ adds it.  Borrows the
 * share until cm_doubts_settle, and counts the doubt in share->doubts. */
void cm_doubts_add(struct cm_doubts *d, struct user_share *share,
		   const struct live_peer *about);
/* Gives a peer that no call has given before; the caller asks its host.  False:
 * there is none.  The place stays in use until cm_doubts_settle. */
bool cm_doubts_take(struct cm_doubts *d, struct live_peer *about);
/* Frees the place of a peer that cm_doubts_take gave, since its host has
 * answered or cannot be asked.  Does nothing for another peer. */
void cm_doubts_settle(struct cm_doubts *d, const struct live_peer *about);

#endif
