/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes of other hosts live: asks their brokers over QP1, and
 * answers theirs (cm/live.h).  Part of the broker's loop: one owner, no lock,
 * nothing waits.
 */
#ifndef ADVERB_BROKER_FAR_H
#define ADVERB_BROKER_FAR_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/gsi.h"
#include "cm/live.h"

struct far;

/* Whether the process of this namespace lives that a QPN belongs to. */
typedef enum livemsg_state far_state(void *user, uint32_t qpn);

/* Attaches to gsi, which it borrows; NULL without memory. */
struct far *far_new(struct gsi *gsi, far_state *state, void *user,
		    uint64_t now_ns);
void far_free(struct far *f);
/* One far_answer will come; false: too many wait already. */
bool far_ask(struct far *f, uint64_t asker, const struct live_peer *about,
	     uint64_t now_ns);
/* Its asker is gone. */
void far_forget(struct far *f, uint64_t asker);
/* Take one out; false when there is none. */
bool far_answer(struct far *f, struct live_answer *answer);
void far_tick(struct far *f, uint64_t now_ns);
/* Absolute; UINT64_MAX: none. */
uint64_t far_deadline(const struct far *f);

#endif
