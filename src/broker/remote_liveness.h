/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the brokers of other hosts over QP1 whether processes of those hosts
 * live, and answers such questions of other brokers (cm/live.h).  Part of the
 * broker's loop: one owner, no lock, no call waits.
 */
#ifndef BROKER_REMOTE_LIVENESS_H
#define BROKER_REMOTE_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/gsi.h"
#include "cm/live.h"

struct remote_liveness;

/* Returns whether the process of this namespace that has a QPN lives.  user: as
 * given to remote_liveness_new. */
typedef enum livemsg_state remote_liveness_state(void *user, uint32_t qpn);

/* Makes an agent that answers questions of other brokers by `state`, and
 * attaches it to gsi.  Borrows gsi and user until remote_liveness_free.
 * now_ns: CLOCK_MONOTONIC.  NULL: there is no memory, or gsi can take no
 * further agent. */
struct remote_liveness *remote_liveness_new(struct gsi *gsi,
					    remote_liveness_state *state,
					    void *user, uint64_t now_ns);
/* Frees f.  gsi keeps its pointer to f, so the caller calls no gsi_turn after
 * that. */
void remote_liveness_free(struct remote_liveness *f);
/*
 * Asks the peer's host whether the process of a queue pair lives.
 * remote_liveness_answer will give one answer with `asker`, a number that the
 * caller chooses, unless remote_liveness_forget drops the question first.
 * now_ns: CLOCK_MONOTONIC.  False: too many questions are open or too many
 * answers wait, and no answer will come.
 */
bool remote_liveness_ask(struct remote_liveness *f, uint64_t asker,
			 const struct live_peer *about, uint64_t now_ns);
/* Drops the open questions of an asker that is gone. */
void remote_liveness_forget(struct remote_liveness *f, uint64_t asker);
/* Takes the first answer out of the queue, and stores it in *answer.  False:
 * there is none. */
bool remote_liveness_answer(struct remote_liveness *f,
			    struct live_answer *answer);
/* Repeats the questions that are due.  Ends those that have waited too long:
 * their answer is LIVEMSG_UNKNOWN.  now_ns: CLOCK_MONOTONIC. */
void remote_liveness_tick(struct remote_liveness *f, uint64_t now_ns);
/* Returns when remote_liveness_tick is due, in nanoseconds of CLOCK_MONOTONIC;
 * UINT64_MAX: never. */
uint64_t remote_liveness_deadline(const struct remote_liveness *f);

#endif
