/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds packets that wait for each other in a cycle.  A packet waits for room
 * in the input buffer at the far end of its link (lane.h).  That room comes
 * back only when one of the packets in that buffer leaves, and these may wait,
 * too.  If routes have a credit loop, the packets of full buffers can wait for
 * each other for ever.
 *
 * The search begins with all queues in which packets wait, and removes each
 * queue that can move, now or later.  A queue can move if its first packet is
 * discarded after some time (HOQLife, LifeTimeValue).  A queue can also move if
 * its first packet will fit into the buffer at the far end.  A packet in that
 * buffer counts only if it waits in a queue that is not yet removed.  The other
 * packets can leave: their receiver may fetch them, or their queue was removed.
 * The queues that are left never move, unless one of their packets is
 * discarded, for example because a link goes down.
 */
#ifndef FABRIC_DEADLOCK_H
#define FABRIC_DEADLOCK_H

#include "fabric/fabric.h"

enum {
	DEADLOCK_TEXT = 416, /* bytes of a sentence, with its NUL */
	/* The search runs when a queue has not moved for this time.  The search
	 * is repeated at this interval while there is such a queue, or while
	 * the last search has found a deadlock. */
	DEADLOCK_MS = 1000,
};

/* A deadlock that was found. */
struct deadlock {
	uint64_t searched_ms;	  /* when the last search ran */
	bool is_told;		  /* deadlock_news has returned the sentence */
	char text[DEADLOCK_TEXT]; /* the sentence; "": there is no deadlock */
};

/* Searches, if it is time, at f->now_ms. */
void deadlock_tick(struct fabric *f);
/* Returns the time of the next search, in ms; FABRIC_NEVER: no packet waits,
 * and the last search has found no deadlock. */
uint64_t deadlock_deadline(const struct fabric *f);
/* Returns the sentence about the deadlock that the last search has found: the
 * links and VLs of the cycle, and a remedy; NULL: the search has found none.
 * The sentence is valid until the next fabric_turn. */
const char *deadlock_text(const struct fabric *f);
/* Does the work of deadlock_text, but returns the sentence only once: after
 * that returns NULL, until a search has found no deadlock and a later search
 * has found one. */
const char *deadlock_news(struct fabric *f);

#endif
