/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking the broker of another host whether a process of it lives, and
 * answering such questions (hdr/livemsg.h).
 *
 *	in	live_ask, live_rx, live_tick
 *	out	live_tx, live_answer, live_deadline
 *
 * Sans-IO, like cm.h; the owner empties both outputs after every call.  One
 * owner, no lock.  A question is repeated until LIVE_PATIENCE_NS have passed:
 * then the peer is taken for one that does not speak this.  What comes unasked
 * leaves no trace but in a budget of answers, one for each of LIVE_BUDGETS
 * sets of addresses.
 */
#ifndef CM_LIVE_H
#define CM_LIVE_H

#include "cm/cm.h"
#include "hdr/livemsg.h"

#define LIVE_QUESTIONS	 512
#define LIVE_OF_ONE	 128	    /* questions of one asker */
#define LIVE_PATIENCE_NS 500000000u /* in which five go out */
#define LIVE_BUDGETS	 256
#define LIVE_BUDGET	 64	  /* answers at once to one set, */
#define LIVE_REFILL_NS	 5000000u /* and one more in each 5 ms */

struct live;

/* Who is asked about which QPN, from which of our addresses. */
struct live_peer {
	uint8_t local[16], peer[16];
	uint32_t scope; /* interface of link-local addresses, 0: any */
	uint32_t qpn;
};

struct live_answer {
	uint64_t asker;
	struct live_peer about;
	enum livemsg_state state;
};

/* A question from outside, to be answered by live_reply. */
struct live_question {
	struct live_peer from; /* qpn: one of ours */
	uint64_t nonce;
};

struct live_counters {
	uint64_t asked, answered, silent, rx, malformed, strays, over_budget;
};

/* NULL without memory. */
struct live *live_new(uint64_t seed, uint64_t now_ns);
void live_free(struct live *l);
/* As cm_seed: nonces must not be guessed. */
void live_seed(struct live *l, uint64_t entropy);
const struct live_counters *live_counters(const struct live *l);

/* One answer will come; false: too many wait already. */
bool live_ask(struct live *l, uint64_t asker, const struct live_peer *about,
	      uint64_t now_ns);
/* Nobody waits for these answers any more. */
void live_forget(struct live *l, uint64_t asker);
/* True with a question that asks us. */
bool live_rx(struct live *l, const uint8_t from[16], const uint8_t to[16],
	     uint32_t scope, const uint8_t *mad, size_t len, uint64_t now_ns,
	     struct live_question *q);
void live_reply(struct live *l, const struct live_question *q,
		enum livemsg_state state);
void live_tick(struct live *l, uint64_t now_ns);
/* Take one out; false when there is none. */
bool live_tx(struct live *l, struct cm_frame *frame);
bool live_answer(struct live *l, struct live_answer *answer);
/* Absolute time of the next live_tick needed; UINT64_MAX: none. */
uint64_t live_deadline(const struct live *l);

#endif
