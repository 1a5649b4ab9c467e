/* SPDX-License-Identifier: BSD-2-Clause */
/* Liveness across hosts; see live.h. */
#include "cm/live.h"

#include <stdlib.h>
#include <string.h>

#include "util/rng.h"

#define RING (LIVE_QUESTIONS + 64)
/* The wait before the first repetition.  Each further wait is twice as long,
 * but the last wait is what is left of LIVE_PATIENCE_NS. */
#define FIRST_NS 20000000u
#define TRIES	 5 /* waits of 20, 40, 80, 160 and 200 ms */

struct question {
	bool is_open;  /* false: this entry is free */
	uint8_t tries; /* how often the question was sent */
	/* asker: see live_ask.  nonce: that of the question, which the answer
	 * must repeat.  due_ns: when the question is repeated, or given up
	 * after the last try.  until_ns: when the question is given up. */
	uint64_t asker, nonce, due_ns, until_ns;
	struct live_peer about; /* the queue pair */
};

/* The limit of the answers to all brokers whose addresses have one hash
 * (may_answer). */
struct budget {
	/* answers given, less one for each LIVE_REFILL_NS that has passed; at
	 * least 0 and at most LIVE_BUDGET */
	uint32_t spent;
	/* `spent` was lowered for each LIVE_REFILL_NS up to this time */
	uint64_t since_ns;
};

struct live {
	struct rng rng;
	uint64_t hash_key;
	uint32_t open; /* how many of question[] are in use */
	struct question question[LIVE_QUESTIONS];
	struct budget budget[LIVE_BUDGETS];
	struct cm_frame tx[RING];
	struct live_answer answer[RING];
	uint32_t tx_head, tx_count, answer_head, answer_count;
	struct live_counters counters;
};

struct live *live_new(uint64_t seed, uint64_t now_ns)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	rng_init(&l->rng, seed);
	l->hash_key = rng_u64(&l->rng);
	for (int i = 0; i < LIVE_BUDGETS; i++)
		l->budget[i].since_ns = now_ns;
	return l;
}

void live_free(struct live *l)
{
	free(l);
}

void live_seed(struct live *l, uint64_t entropy)
{
	rng_init(&l->rng, rng_u64(&l->rng) ^ entropy);
}

const struct live_counters *live_counters(const struct live *l)
{
	return &l->counters;
}

/* A message for which the ring has no room is dropped, which has the effect of
 * a loss on the wire. */
static void send_message(struct live *l, const struct live_peer *to,
			 const struct livemsg *m)
{
	struct cm_frame *f;

	if (l->tx_count == RING)
		return;
	f = &l->tx[(l->tx_head + l->tx_count++) % RING];
	memcpy(f->from, to->local, 16);
	memcpy(f->to, to->peer, 16);
	f->way = (struct cm_way){.scope = to->scope};
	livemsg_write(f->mad, m);
}

/* Sends the question, and sets the time of its next try. */
static void put_question(struct live *l, struct question *q, uint64_t now_ns)
{
	uint64_t wait = (uint64_t)FIRST_NS << q->tries++;

	send_message(l, &q->about,
		     &(struct livemsg){.nonce = q->nonce, .qpn = q->about.qpn});
	q->due_ns = q->tries < TRIES ? now_ns + wait : q->until_ns;
}

/* The ring of answers has room, since live_ask reserves a place for each open
 * question. */
static void close_question(struct live *l, struct question *q,
			   enum livemsg_state state)
{
	l->answer[(l->answer_head + l->answer_count++) % RING] =
		(struct live_answer){q->asker, q->about, state};
	q->is_open = false;
	l->open--;
}

bool live_ask(struct live *l, uint64_t asker, const struct live_peer *about,
	      uint64_t now_ns)
{
	struct question *free_one = NULL;
	uint32_t of_one = 0;

	for (struct question *q = l->question; q < l->question + LIVE_QUESTIONS;
	     q++)
		if (!q->is_open)
			free_one = q;
		else if (q->asker == asker)
			of_one++;
	if (!free_one || of_one == LIVE_OF_ONE ||
	    l->answer_count + l->open + 1 > RING)
		return false;
	*free_one = (struct question){.is_open = true,
				      .asker = asker,
				      .nonce = rng_u64(&l->rng),
				      .until_ns = now_ns + LIVE_PATIENCE_NS,
				      .about = *about};
	l->open++;
	l->counters.asked++;
	put_question(l, free_one, now_ns);
	return true;
}

void live_forget(struct live *l, uint64_t asker)
{
	for (struct question *q = l->question; q < l->question + LIVE_QUESTIONS;
	     q++)
		if (q->is_open && q->asker == asker) {
			q->is_open = false;
			l->open--;
		}
}

/* Closes the open question that has the answer's nonce, if the answer came from
 * the peer that was asked, to the address from which the question was sent, and
 * has the question's QPN.  A refusal has no QPN. */
static void take_answer(struct live *l, const uint8_t from[16],
			const uint8_t to[16], const struct livemsg *m)
{
	for (struct question *q = l->question; q < l->question + LIVE_QUESTIONS;
	     q++) {
		if (!q->is_open || q->nonce != m->nonce ||
		    memcmp(q->about.peer, from, 16) != 0 ||
		    memcmp(q->about.local, to, 16) != 0 ||
		    (!m->is_refusal && q->about.qpn != m->qpn))
			continue;
		l->counters.answered++;
		close_question(l, q,
			       m->is_refusal ? LIVEMSG_UNKNOWN : m->state);
		return;
	}
	l->counters.strays++;
}

/* May a question from this address be answered?  If so, the answer is taken
 * from the address's budget. */
static bool may_answer(struct live *l, const uint8_t from[16], uint64_t now_ns)
{
	uint64_t h = l->hash_key, refill;
	struct budget *b;

	for (int i = 0; i < 16; i++)
		h = (h ^ from[i]) * 0x100000001b3u;
	b = &l->budget[(h ^ h >> 32) % LIVE_BUDGETS];
	refill = (now_ns - b->since_ns) / LIVE_REFILL_NS;
	b->spent = refill < b->spent ? b->spent - (uint32_t)refill : 0;
	b->since_ns += refill * LIVE_REFILL_NS;
	if (b->spent == LIVE_BUDGET) {
		l->counters.over_budget++;
		return false;
	}
	b->spent++;
	return true;
}

bool live_rx(struct live *l, const uint8_t from[16], const uint8_t to[16],
	     uint32_t scope, const uint8_t *mad, size_t len, uint64_t now_ns,
	     struct live_question *q)
{
	struct livemsg m;

	l->counters.rx++;
	if (!livemsg_parse(mad, len, &m)) {
		l->counters.malformed++;
		return false;
	}
	if (m.is_answer) {
		take_answer(l, from, to, &m);
		return false;
	}
	if (!may_answer(l, from, now_ns))
		return false;
	*q = (struct live_question){
		.from.scope = scope, .from.qpn = m.qpn, .nonce = m.nonce};
	memcpy(q->from.local, to, 16);
	memcpy(q->from.peer, from, 16);
	return true;
}

void live_reply(struct live *l, const struct live_question *q,
		enum livemsg_state state)
{
	send_message(l, &q->from,
		     &(struct livemsg){.is_answer = true,
				       .nonce = q->nonce,
				       .qpn = q->from.qpn,
				       .state = state});
}

void live_tick(struct live *l, uint64_t now_ns)
{
	for (struct question *q = l->question; q < l->question + LIVE_QUESTIONS;
	     q++) {
		if (!q->is_open || q->due_ns > now_ns)
			continue;
		if (q->tries < TRIES && q->until_ns > now_ns) {
			put_question(l, q, now_ns);
			continue;
		}
		l->counters.silent++;
		close_question(l, q, LIVEMSG_UNKNOWN);
	}
}

bool live_tx(struct live *l, struct cm_frame *frame)
{
	if (!l->tx_count)
		return false;
	*frame = l->tx[l->tx_head];
	l->tx_head = (l->tx_head + 1) % RING;
	l->tx_count--;
	return true;
}

bool live_answer(struct live *l, struct live_answer *answer)
{
	if (!l->answer_count)
		return false;
	*answer = l->answer[l->answer_head];
	l->answer_head = (l->answer_head + 1) % RING;
	l->answer_count--;
	return true;
}

uint64_t live_deadline(const struct live *l)
{
	uint64_t due = UINT64_MAX;

	for (uint32_t i = 0; l->open && i < LIVE_QUESTIONS; i++)
		if (l->question[i].is_open && l->question[i].due_ns < due)
			due = l->question[i].due_ns;
	return due;
}
