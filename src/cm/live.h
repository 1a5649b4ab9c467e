/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the brokers of other hosts whether one of their processes lives, and
 * answers such questions of theirs (hdr/livemsg.h).
 *
 *	in	live_ask, live_rx, live_tick
 *	out	live_tx, live_answer, live_deadline
 *
 * Sans-IO, as cm.h: the caller empties both outputs after each call.  One
 * thread at a time, no lock.  A question is repeated for LIVE_PATIENCE_NS; then
 * its answer is LIVEMSG_UNKNOWN, as of a peer that does not know this protocol.
 * A question from outside changes no state except a budget of answers: a hash
 * of the sender's address picks one of LIVE_BUDGETS budgets.
 */
#ifndef CM_LIVE_H
#define CM_LIVE_H

#include "cm/cm.h"
#include "hdr/livemsg.h"

#define LIVE_QUESTIONS	 512
#define LIVE_OF_ONE	 128	    /* questions of one asker */
#define LIVE_PATIENCE_NS 500000000u /* for five tries */
#define LIVE_BUDGETS	 256
#define LIVE_BUDGET	 64	  /* answers at once of one budget */
#define LIVE_REFILL_NS	 5000000u /* until one more may be sent */

struct live;

/* A queue pair of a peer, and our address that the peer is asked from. */
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

/* A question of another broker, which live_reply answers. */
struct live_question {
	struct live_peer from; /* its qpn is one of ours */
	uint64_t nonce;
};

struct live_counters {
	uint64_t asked, answered, silent, rx, malformed, strays, over_budget;
};

/* Makes an asker without questions; NULL without memory. seed: of nonces, see
 * live_seed. */
struct live *live_new(uint64_t seed, uint64_t now_ns);
/* Frees l with all open questions. */
void live_free(struct live *l);
/* Mixes entropy into the source of nonces.  A host that could guess a nonce
 * could answer in place of the peer. */
void live_seed(struct live *l, uint64_t entropy);
/* Returns the counters, which stay l's. */
const struct live_counters *live_counters(const struct live *l);

/* Asks the peer; live_answer will give one answer for the asker.  False: too
 * many questions are open, and no answer will come. */
bool live_ask(struct live *l, uint64_t asker, const struct live_peer *about,
	      uint64_t now_ns);
/* Drops the asker's open questions. */
void live_forget(struct live *l, uint64_t asker);
/* Handles a MAD of any contents that has come from `from` to `to`.  True with
 * *q: the MAD is a question, which the caller answers by live_reply. */
bool live_rx(struct live *l, const uint8_t from[16], const uint8_t to[16],
	     uint32_t scope, const uint8_t *mad, size_t len, uint64_t now_ns,
	     struct live_question *q);
/* Answers a question that live_rx gave. */
void live_reply(struct live *l, const struct live_question *q,
		enum livemsg_state state);
/* Repeats the questions that are due; those that have waited for
 * LIVE_PATIENCE_NS get the answer LIVEMSG_UNKNOWN. */
void live_tick(struct live *l, uint64_t now_ns);
/* Takes the first message to send out of its ring; false: there is none. */
bool live_tx(struct live *l, struct cm_frame *frame);
/* Takes the first answer out of its ring; false: there is none. */
bool live_answer(struct live *l, struct live_answer *answer);
/* Returns the absolute time of the next live_tick that is needed; UINT64_MAX:
 * none. */
uint64_t live_deadline(const struct live *l);

#endif
