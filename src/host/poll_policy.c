/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/poll_policy.h"

#include <string.h>

#include "util/bits.h"

#define BULK_COUNT   8 /* a run of more than 8 packets is a bulk datagram */
#define FULL_TURN    8 /* one poll in so many makes a full turn */
#define STREAM_POSTS 4 /* posts of a stream between looks at the ACKs */
/* After more dry looks in a row, peers are told that the socket is empty. */
#define DRY_LOOKS    8
#define POSTING_NS   20000u /* between looks of a thread that posts a stream */
#define IN_VAIN_MAX  3	    /* POSTING_NS is doubled at most 3 times */
#define SLOWNESS_MAX 64
#define MIND_AFTER   8 /* unanswered posts until the thread looks */
/* For how long after the last such post the thread looks. */
#define MIND_FOR_NS 1000000u
#define PENALTY_MIN 1024u
#define PENALTY_MAX 16384u
#define FORGIVEN    16u	     /* groups until the penalty is halved */
#define COMPUTED_NS 1000000u /* in a longer yield other threads computed */

void poll_policy_init(struct poll_policy *p)
{
	memset(p, 0, sizeof(*p));
	rx_backoff_init(&p->looks.backoff);
	p->thread.slowness = 1;
	p->unanswered.penalty = PENALTY_MIN;
}

void poll_policy_fix(struct poll_policy *p)
{
	p->looks.is_fixed = true;
}

static bool is_bulk(size_t len, size_t segment)
{
	return len >= POLL_POLICY_BULK ||
	       (segment && len > BULK_COUNT * segment);
}

void poll_policy_sent(struct poll_policy *p, size_t len, size_t segment)
{
	struct poll_stream *s = &p->stream;

	if (!is_bulk(len, segment) || p->looks.is_fixed)
		return;
	shared_store(&s->streak, shared_own(&s->streak) + 1);
	s->bulk++;
	s->inflow = 0;
}

void poll_policy_received(struct poll_policy *p, size_t len, size_t segment)
{
	if (!is_bulk(len, segment) || p->looks.is_fixed)
		return;
	p->stream.bulk++;
	p->stream.inflow++;
	shared_store(&p->stream.streak, 0);
}

bool poll_policy_joins(size_t bytes, size_t count)
{
	return bytes >= POLL_POLICY_BULK || count >= BULK_COUNT;
}

bool poll_policy_may_look(const struct poll_policy *p, bool is_behind,
			  uint64_t now_ns)
{
	return is_behind || !rx_backoff_waits(&p->looks.backoff, now_ns);
}

void poll_policy_looked(struct poll_policy *p, size_t bytes, bool is_dry,
			uint64_t now_ns, uint64_t served_ns)
{
	struct poll_looks *l = &p->looks;
	bool is_off;

	l->is_dry = is_dry;
	l->dry_looks = is_dry ? l->dry_looks + 1 : 0;
	if (!l->is_fixed)
		rx_backoff_looked(&l->backoff, bytes, served_ns);
	is_off = rx_backoff_is_off(&l->backoff);
	if (shared_own(&l->is_paced) == is_off)
		shared_store(&l->is_paced, !is_off);
	l->looked_ns = now_ns;
	l->in_vain = bytes ? 0 : bits_min_u32(l->in_vain + 1, IN_VAIN_MAX);
	if (bytes)
		shared_store(&l->news, shared_own(&l->news) + 1);
}

void poll_policy_skipped(struct poll_policy *p)
{
	p->looks.is_dry = false;
}

bool poll_policy_is_empty(const struct poll_policy *p, bool waits)
{
	return p->looks.is_dry && (waits || p->looks.dry_looks > DRY_LOOKS);
}

bool poll_policy_is_full_turn(struct poll_policy *p)
{
	return p->looks.polls++ % FULL_TURN == 0;
}

static bool is_streaming(const struct poll_policy *p)
{
	return shared_own(&p->stream.streak) >= POLL_POLICY_STREAM;
}

bool poll_policy_skips_socket(const struct poll_policy *p)
{
	return p->looks.in_vain == IN_VAIN_MAX && is_streaming(p);
}

enum poll_post poll_policy_post(struct poll_policy *p, uint64_t now_ns)
{
	const struct poll_looks *l = &p->looks;

	if (!is_streaming(p))
		return POLL_POST_SEND;
	if (now_ns - l->looked_ns > POSTING_NS << l->in_vain)
		return POLL_POST_TURN;
	return p->stream.posts++ % STREAM_POSTS == 0 ? POLL_POST_ACKS
						     : POLL_POST_SEND;
}

bool poll_policy_may_gather(const struct poll_policy *p, uint32_t bytes)
{
	return shared_own(&p->gathered) + bytes <= POLL_POLICY_GATHER;
}

void poll_policy_gathered(struct poll_policy *p, uint32_t bytes)
{
	shared_store(&p->gathered, shared_own(&p->gathered) + bytes);
}

static uint32_t odd_us(uint64_t now_ns)
{
	return (uint32_t)(now_ns / 1000) | 1;
}

bool poll_policy_is_waiting(const struct poll_policy *p)
{
	return shared_own(&p->unanswered.since_us);
}

void poll_policy_waits(struct poll_policy *p, uint64_t now_ns)
{
	if (!poll_policy_is_waiting(p))
		shared_store(&p->unanswered.since_us, odd_us(now_ns));
}

/* Called when a request that no packet acknowledges has waited too long.  The
 * next u->penalty such requests are not counted, so the thread that waits for
 * work does not look for them, and they do not wait. */
static void forbid_waits(struct poll_unanswered *u)
{
	u->forbidden = u->penalty;
	u->penalty = bits_min_u32(2 * u->penalty, PENALTY_MAX);
	u->groups = 0;
	u->count = 0;
	/* A thread that posts may have pushed its doorbell, and then have
	 * loaded true from is_served, so it leaves the doorbell on the list.
	 * The thread that waits for work has planned to look within
	 * POLL_POLICY_SERVE_NS, and then serves that doorbell. */
	shared_store(&u->is_served, false);
}

/* Notes that the requests that no packet acknowledges wait no more. */
static void end_wait(struct poll_unanswered *u, uint64_t now_ns)
{
	uint32_t since = shared_own(&u->since_us);
	/* negative if the clock of this thread is behind that of the poster */
	int32_t waited;

	if (!since)
		return;
	shared_store(&u->since_us, 0);
	waited = (int32_t)(odd_us(now_ns) - since);
	if (waited > POLL_POLICY_LATE_NS / 1000)
		forbid_waits(u);
	else if (++u->groups % FORGIVEN == 0)
		u->penalty = bits_max_u32(u->penalty / 2, PENALTY_MIN);
}

void poll_policy_scattered(struct poll_policy *p, uint64_t now_ns)
{
	shared_store(&p->gathered, 0);
	end_wait(&p->unanswered, now_ns);
}

void poll_policy_unanswered(struct poll_policy *p, uint64_t now_ns)
{
	struct poll_unanswered *u = &p->unanswered;

	if (u->forbidden) {
		u->forbidden--;
		return;
	}
	if (now_ns - u->last_ns > POLL_POLICY_SERVE_NS)
		u->count = 0;
	u->count++;
	u->last_ns = now_ns;
}

void poll_policy_large(struct poll_policy *p)
{
	p->unanswered.count = 0;
}

bool poll_policy_wants_service(const struct poll_policy *p)
{
	return p->unanswered.count >= MIND_AFTER &&
	       !shared_own(&p->unanswered.is_served);
}

uint64_t poll_policy_serve(struct poll_policy *p, uint64_t now_ns)
{
	struct poll_unanswered *u = &p->unanswered;
	bool serves =
		u->count >= MIND_AFTER && now_ns - u->last_ns < MIND_FOR_NS;

	if (!serves)
		u->count = 0;
	/*
	 * A thread that posts stores its doorbell, passes a fence and loads
	 * this flag.  The holder of the lock stores this flag, releases the
	 * lock, which is a fence, and loads the doorbells.  So at least one of
	 * the two sees the other's store.  Without the fences a post could wait
	 * although no thread looks for it.
	 */
	shared_store(&u->is_served, serves);
	return serves ? now_ns + POLL_POLICY_SERVE_NS : UINT64_MAX;
}

void poll_policy_news(struct poll_policy *p)
{
	shared_store(&p->looks.news, shared_own(&p->looks.news) + 1);
}

void poll_policy_rested(struct poll_policy *p, uint64_t bulk, uint32_t news,
			uint64_t now_ns)
{
	struct poll_thread *t = &p->thread;

	t->rest_ns = now_ns;
	if (shared_own(&p->looks.news) != news)
		t->heard_ns = now_ns;
	if (p->stream.bulk != bulk &&
	    (p->stream.inflow >= POLL_POLICY_STREAM || is_streaming(p)))
		p->stream.linger_ns = now_ns + POLL_POLICY_LINGER_NS;
}

void poll_policy_sleeps(struct poll_policy *p, bool is_behind)
{
	p->thread.pause_ns = is_behind ? 0 : p->looks.backoff.until_ns;
}

void poll_policy_thread_looked(struct poll_policy *p, uint64_t now_ns)
{
	struct poll_thread *t = &p->thread;
	uint64_t took = now_ns - t->rest_ns;

	if (t->heard_ns == t->rest_ns || p->looks.is_fixed)
		return;
	if (!t->look_ns || took < t->look_ns)
		t->look_ns = took;
	else
		t->look_ns += bits_min_u64(took - t->look_ns, t->look_ns) / 64;
	t->slowness = (uint32_t)bits_max_u64(
		bits_min_u64(t->look_ns / POLL_POLICY_LOOK_NS, SLOWNESS_MAX),
		1);
}

uint64_t poll_policy_lingers(const struct poll_policy *p, uint64_t now_ns)
{
	uint64_t until = p->stream.linger_ns;

	return now_ns < until ? until - now_ns : 0;
}

bool poll_policy_pauses(const struct poll_policy *p, uint64_t now_ns)
{
	return now_ns < p->thread.pause_ns;
}

void poll_policy_yielded(struct poll_crowd *c, uint64_t began_ns,
			 uint64_t took_ns)
{
	if (took_ns <= COMPUTED_NS) {
		*c = (struct poll_crowd){0};
		return;
	}
	c->for_ns = c->for_ns ? bits_min_u64(2 * c->for_ns, POLL_CROWD_MAX_NS)
			      : POLL_CROWD_NS;
	c->until_ns = began_ns + took_ns + c->for_ns;
}

bool poll_policy_is_crowded(const struct poll_crowd *c, uint64_t now_ns)
{
	return now_ns < c->until_ns;
}
