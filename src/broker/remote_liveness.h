/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether processes of other hosts live: asks their brokers over QP1, and
 * answers theirs (cm/live.h).  Part of the broker's loop: one owner, no lock,
 * nothing waits.
 */
#ifndef BROKER_REMOTE_LIVENESS_H
#define BROKER_REMOTE_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/gsi.h"
#include "cm/live.h"

struct remote_liveness;

/* Says whether the process of this namespace that has a QPN lives. */
typedef enum livemsg_state remote_liveness_state(void *user, uint32_t qpn);

/* Attaches to gsi, which it borrows; NULL without memory. */
struct remote_liveness *remote_liveness_new(struct gsi *gsi,
					    remote_liveness_state *state,
					    void *user, uint64_t now_ns);
/* Frees f; no agent of gsi may be called after that. */
void remote_liveness_free(struct remote_liveness *f);
/* Asks about a peer for `asker`; remote_liveness_answer will give one answer.
 * False: too many questions are open. */
bool remote_liveness_ask(struct remote_liveness *f, uint64_t asker,
			 const struct live_peer *about, uint64_t now_ns);
/* Forgets the questions of an asker that is gone. */
void remote_liveness_forget(struct remote_liveness *f, uint64_t asker);
/* Takes the first answer out of the queue; false: there is none. */
bool remote_liveness_answer(struct remote_liveness *f,
			    struct live_answer *answer);
/* Repeats the questions that are due, and ends those that have no answer in
 * time. */
void remote_liveness_tick(struct remote_liveness *f, uint64_t now_ns);
/* Returns the absolute time at which remote_liveness_tick is due; UINT64_MAX:
 * it is not. */
uint64_t remote_liveness_deadline(const struct remote_liveness *f);

#endif
