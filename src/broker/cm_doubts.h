/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers of other hosts that a REQ says to have lost a connection with a user of
 * this broker, each until the answer to the question whether the peer's queue
 * pair lives.  A user has at most a share of the places, as of others that
 * share.h counts.  Part of the broker's loop: one thread, no lock.
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
	uint32_t used; /* of place[] */
};

/* Doubts a peer of that user's, if the user may have another doubt; else does
 * nothing, and the peer's next REQ is another occasion.  Borrows the share
 * until cm_doubts_settle, by its count `doubts`. */
void cm_doubts_add(struct cm_doubts *d, struct user_share *share,
		   const struct live_peer *about);
/* Takes out a peer that is to be asked; false: there is none.  The place stays
 * in use until cm_doubts_settle. */
bool cm_doubts_take(struct cm_doubts *d, struct live_peer *about);
/* A peer that cm_doubts_take gave is no longer asked: frees the place.  Does
 * nothing for another peer. */
void cm_doubts_settle(struct cm_doubts *d, const struct live_peer *about);

#endif
