/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peers that are doubted.  A REQ from another host may say that a peer
 * there has lost its connection with a client of this broker.  The peer is then
 * doubted until its host has said whether the peer's queue pair is alive, or
 * until no answer has come in time (cm/live.h).  A user with n doubts gets
 * another one only if more than n places are free (cm_owner_may_add); the
 * broker's own user gets one if any place is free.  Part of the broker's loop:
 * one thread, no lock.
 */
#ifndef BROKER_CM_DOUBTS_H
#define BROKER_CM_DOUBTS_H

#include "broker/share.h"
#include "cm/live.h"

#include <stdbool.h>
#include <stdint.h>

/* How many peers can be doubted at once: as many as the questions that one
 * asker may have open. */
#define CM_DOUBTS_MAX LIVE_OF_ONE

/* All zeroes: no peer is doubted. */
struct cm_doubts {
	struct {
		struct user_share *share; /* NULL: the place is free */
		struct live_peer about;	  /* the peer that is doubted */
		bool is_taken; /* cm_doubts_take has given the peer */
	} place[CM_DOUBTS_MAX];
	uint32_t used; /* how many of place[] are used */
};

/* Adds a doubt about a peer of a client; share: that of the client's user.  If
 * the user may have no further doubt, does nothing: a later REQ of the peer
 * raises the doubt again.  Borrows the share until cm_doubts_settle, and counts
 * the doubt in share->doubts. */
void cm_doubts_add(struct cm_doubts *d, struct user_share *share,
		   const struct live_peer *about);
/* Sets *about to a doubted peer that no call has given yet; the caller asks the
 * peer's host.  False: there is none.  The place of the peer stays in use until
 * cm_doubts_settle. */
bool cm_doubts_take(struct cm_doubts *d, struct live_peer *about);
/* Frees the place of a peer that cm_doubts_take has given, after its host has
 * answered or could not be asked.  Does nothing for any other peer. */
void cm_doubts_settle(struct cm_doubts *d, const struct live_peer *about);

#endif
