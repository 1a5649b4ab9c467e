/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the broker of another host whether the process of a queue pair there
 * lives, and answers such questions of other brokers (hdr/livemsg.h).
 *
 *	in	live_ask, live_rx, live_reply, live_tick
 *	out	live_tx, live_answer, live_deadline
 *
 * Sans-IO: no socket, clock or thread.  Messages and answers wait in rings of
 * fixed size until the caller takes them by live_tx and live_answer.  A message
 * that finds its ring full is dropped.  One thread at a time calls these
 * functions; there is no lock.
 *
 * A question is repeated for LIVE_PATIENCE_NS.  If no answer has come by then,
 * the asker gets LIVEMSG_UNKNOWN, which is also the answer for a peer that does
 * not know this protocol.  A question of another broker changes no state except
 * counters and a budget of answers.  A hash of the broker's address picks one
 * of LIVE_BUDGETS budgets.
 */
#ifndef CM_LIVE_H
#define CM_LIVE_H

#include "cm/cm.h"
#include "hdr/livemsg.h"

#define LIVE_QUESTIONS	 512	    /* the most open questions */
#define LIVE_OF_ONE	 128	    /* the most open questions of one asker */
#define LIVE_PATIENCE_NS 500000000u /* how long a question stays open */
#define LIVE_BUDGETS	 256	    /* budgets of answers to other brokers */
/* The most answers that a budget saves up, and the time in which it gains one.
 * If all processes of a host stop at once, the host's peers ask about each
 * connection in each ACK timeout, and a connection without any answer fails. */
#define LIVE_BUDGET    1024
#define LIVE_REFILL_NS 500000u

struct live;

/* A queue pair of a peer, and our own address from which the peer is asked. */
struct live_peer {
	uint8_t local[16], peer[16]; /* our address and the peer's */
	uint32_t scope; /* interface of link-local addresses; 0: any */
	uint32_t qpn;	/* the queue pair's number at the peer */
};

/* The answer to a question of live_ask. */
struct live_answer {
	uint64_t asker;		/* the number that the caller gave live_ask */
	struct live_peer about; /* the queue pair that was asked about */
	/* The peer's answer; LIVEMSG_UNKNOWN also if none has come. */
	enum livemsg_state state;
};

/* A question of another broker, which live_reply answers. */
struct live_question {
	/* The question came from the address `peer` to the address `local`,
	 * and asks about `qpn`, a queue pair of this host. */
	struct live_peer from;
	uint64_t nonce; /* the question's, which the answer repeats */
};

/*
 * Counters.
 *	asked		questions of live_ask
 *	answered	of these, questions that the peer has answered, also by
 *			a refusal (livemsg.is_refusal)
 *	silent		of these, questions that got no answer in time
 *	rx		messages received
 *	malformed	messages received, but not parsed
 *	strays		answers received that fit no open question
 *	over_budget	questions of other brokers that were ignored, since
 *			their budget was used up
 */
struct live_counters {
	uint64_t asked, answered, silent, rx, malformed, strays, over_budget;
};

/* Makes a struct live without questions, which the caller frees by live_free.
 * The nonces (live_seed) and the hash that picks a budget depend on the seed.
 * NULL: out of memory. */
struct live *live_new(uint64_t seed, uint64_t now_ns);
/* Frees l with all open questions. */
void live_free(struct live *l);
/* Mixes entropy into the source of nonces.  A host that could guess a nonce
 * could answer in place of the peer. */
void live_seed(struct live *l, uint64_t entropy);
/* Returns the counters, which stay l's. */
const struct live_counters *live_counters(const struct live *l);

/* Asks the peer whether the process of a queue pair lives.  `asker` is any
 * number, which the answer repeats.  live_answer will give one answer, unless
 * live_forget drops the question first.  False: no answer will come, since too
 * many questions are open (LIVE_QUESTIONS, LIVE_OF_ONE) or too many answers
 * wait in the ring. */
bool live_ask(struct live *l, uint64_t asker, const struct live_peer *about,
	      uint64_t now_ns);
/* Drops the asker's open questions.  Answers that wait in the ring stay. */
void live_forget(struct live *l, uint64_t asker);
/* Handles a MAD of `len` bytes and any contents, which has come from the
 * address `from` to the address `to`.  `scope` is the index of the receiving
 * interface for link-local addresses, else 0.  True with *q: the MAD is a
 * question, which the caller answers by live_reply.  False: the MAD is an
 * answer, is malformed, or is a question beyond the budget of its sender. */
bool live_rx(struct live *l, const uint8_t from[16], const uint8_t to[16],
	     uint32_t scope, const uint8_t *mad, size_t len, uint64_t now_ns,
	     struct live_question *q);
/* Answers a question that live_rx gave. */
void live_reply(struct live *l, const struct live_question *q,
		enum livemsg_state state);
/* Repeats the questions that are due.  A question that has waited for
 * LIVE_PATIENCE_NS gets the answer LIVEMSG_UNKNOWN. */
void live_tick(struct live *l, uint64_t now_ns);
/* Removes the first message from the ring of messages to send, and stores it in
 * *frame; false: there is none. */
bool live_tx(struct live *l, struct cm_frame *frame);
/* Removes the first answer from the ring of answers, and stores it in *answer;
 * false: there is none. */
bool live_answer(struct live *l, struct live_answer *answer);
/* Returns the absolute time, in ns, at which live_tick is needed next;
 * UINT64_MAX: no question is open. */
uint64_t live_deadline(const struct live *l);

#endif
