/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open question to the subnet administration.  A question without an answer
 * is asked at most ASK_TRIES times.  After a failure the owner waits before it
 * asks again, longer after each failure in sequence.  Owner: a neighbour or a
 * group.
 */
#ifndef IPOIB_ASK_H
#define IPOIB_ASK_H

#include <stdbool.h>
#include <stdint.h>

#define ASK_TRIES	  3
#define ASK_TRY_MS	  1000 /* until a try is given up */
#define ASK_PAUSE_MS	  1000 /* after the first failure */
#define ASK_PAUSE_MOST_MS 16000
#define ASK_NEVER	  UINT64_MAX

/* All zero: no question was asked. */
struct ask {
	uint32_t id;	   /* of the open question; 0: none is open */
	uint32_t tries;	   /* how often the question was asked */
	uint64_t due_ms;   /* when the present try ends */
	uint32_t failures; /* in sequence */
	uint64_t retry_ms; /* before this time no question begins */
};

/* Is a question open whose answer has not come in time? */
bool ask_is_late(const struct ask *a, uint64_t now_ms);
/* May a question begin? */
bool ask_may_begin(const struct ask *a, uint64_t now_ms);
/* Begins a question, or another try of the open one, with a new id. */
void ask_begin(struct ask *a, uint32_t id, uint64_t now_ms);
/* Ends the question, which has failed: no answer came, or a refusal.  The next
 * question may begin after a pause. */
void ask_fail(struct ask *a, uint64_t now_ms);
/* Forgets the question, which is answered or of no more use, and the failures,
 * so that a question may begin at once. */
void ask_reset(struct ask *a);
/* Returns when the try of the open question ends; if none is open, when a
 * question may begin. */
uint64_t ask_deadline(const struct ask *a);

#endif
