/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When progress looks at the socket, and when a thread that makes progress may
 * sleep.  Decisions alone: the callers look, send and sleep.  All times come in
 * as arguments.
 *
 *	a poll     -> poll_policy_is_full_turn, _skips_socket
 *	a post     -> poll_policy_post, _may_gather
 *	a look     -> poll_policy_may_look; then _looked
 *	a datagram -> poll_policy_received, _sent
 *	the thread -> poll_policy_rested, _thread_looked; _lingers, _pauses
 *
 * A stream is a run of datagrams of which each carries much.  Its sender seldom
 * looks for answers, and its receiver does not sleep between two of them.
 *
 * Owner and lock: struct progress and its lock, but for the shared words, which
 * threads read without it.  Sans-IO.
 */
#ifndef HOST_POLL_POLICY_H
#define HOST_POLL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/rx_backoff.h"
#include "util/shared.h"

#define POLL_POLICY_LINGER_NS 40000
#define POLL_POLICY_STREAM    8	     /* a run of that many is a stream */
#define POLL_POLICY_GATHER    32768  /* bytes of posts that may wait together */
#define POLL_POLICY_MIND_NS   100000 /* the thread's looks at gathered posts */
#define POLL_POLICY_BULK      16384  /* bytes of a datagram that carries much */
#define POLL_POLICY_LOOK_NS   500    /* a look in vain, where slowness is 1 */

/* Datagrams that carry much. */
struct poll_stream {
	uint64_t bulk;	    /* how many, sent and received */
	uint64_t inflow;    /* how many were received since one was sent */
	shared_u32 streak;  /* how many were sent since one was received */
	uint64_t linger_ns; /* until then the thread does not sleep */
	uint32_t posts;	    /* posts in a stream: see poll_policy_post */
};

/* Looks at the socket, by whichever thread. */
struct poll_looks {
	struct rx_backoff backoff;
	shared_flag is_paced; /* the backoff makes a poll skip the socket */
	bool is_dry;	      /* the last look left nothing in the socket */
	uint32_t dry_looks;   /* how many looks in a row left nothing */
	uint64_t looked_ns;   /* when the last look was */
	uint32_t in_vain;     /* looks in a row that found nothing, at most 3 */
	bool is_fixed;	      /* poll_policy_fix */
	uint32_t polls;	      /* counts polls: see poll_policy_is_full_turn */
	shared_u32 news;      /* looks that found something, streams too */
};

/* Looks by the thread that waits for work. */
struct poll_thread {
	uint64_t rest_ns;  /* when the last look ended */
	uint64_t heard_ns; /* when a look last found something */
	uint64_t look_ns;  /* ns that a look takes which finds nothing */
	uint32_t slowness; /* look_ns in units of POLL_POLICY_LOOK_NS */
	uint64_t pause_ns; /* until then the backoff forbids a look */
};

/* Requests of UC and UD, which nothing acknowledges. */
struct poll_unanswered {
	uint32_t count;	  /* how many were posted without a pause */
	uint64_t last_ns; /* when the last was posted */
	/* The thread looks at gathered posts each POLL_POLICY_MIND_NS. */
	shared_flag is_minded;
};

struct poll_policy {
	struct poll_stream stream;
	struct poll_looks looks;
	struct poll_thread thread;
	struct poll_unanswered unanswered;
	/* Bytes of posts that wait together, roughly: several threads add. */
	shared_u32 gathered;
};

/* Starts a policy that has seen no traffic. */
void poll_policy_init(struct poll_policy *p);
/*
 * From here on the policy decides the same for all traffic: no run of datagrams
 * counts as a stream, each poll may look at the socket, and no wait depends on
 * how long a look takes.  For measurements of what the rest of this file
 * brings.  Called before the first datagram.
 */
void poll_policy_fix(struct poll_policy *p);

/* A datagram, or a run of them of @segment bytes each, was sent. */
void poll_policy_sent(struct poll_policy *p, size_t len, size_t segment);
/* A datagram, or a run of them of @segment bytes each, was received. */
void poll_policy_received(struct poll_policy *p, size_t len, size_t segment);
/* Did one look find so much (@bytes in @count datagrams) that the socket should
 * join datagrams (GRO)? */
bool poll_policy_joins(size_t bytes, size_t count);

/*
 * May the socket be looked at?  @is_behind: the last look left datagrams, which
 * end the backoff.
 */
bool poll_policy_may_look(const struct poll_policy *p, bool is_behind,
			  uint64_t now_ns);
/*
 * A look brought @bytes, 0 if it found nothing, and left the socket empty if
 * @is_dry.  @now_ns: when it began; @served_ns: when its datagrams were served,
 * or now_ns for less than POLL_POLICY_BULK bytes.
 */
void poll_policy_looked(struct poll_policy *p, size_t bytes, bool is_dry,
			uint64_t now_ns, uint64_t served_ns);
/* Something came by another way than the socket's datagrams. */
void poll_policy_news(struct poll_policy *p);
/* The backoff forbade a look: whether the socket is empty is not known. */
void poll_policy_skipped(struct poll_policy *p);
/* Is the socket empty, as far as the peers should be told?  @waits: the caller
 * is about to wait for datagrams. */
bool poll_policy_is_empty(const struct poll_policy *p, bool waits);

/* Does this poll do everything, timers included?  Each eighth does. */
bool poll_policy_is_full_turn(struct poll_policy *p);
/* Does a poll skip the socket, since a stream's ACKs come in shared memory? */
bool poll_policy_skips_socket(const struct poll_policy *p);

enum poll_post {
	POLL_POST_SEND, /* send what was posted */
	POLL_POST_ACKS, /* first read the ACKs in shared memory */
	POLL_POST_TURN, /* a full turn, with a look at the socket */
};

/* Returns what a post has to do besides sending: a program that posts for long
 * without a poll has ACKs waiting. */
enum poll_post poll_policy_post(struct poll_policy *p, uint64_t now_ns);
/* May @bytes that are posted wait for more?  Called without the lock, before
 * the doorbell's fence. */
bool poll_policy_may_gather(const struct poll_policy *p, uint32_t bytes);
/* @bytes that were posted wait for more.  Without the lock. */
void poll_policy_gathered(struct poll_policy *p, uint32_t bytes);
/* All that has gathered is being sent. */
void poll_policy_scattered(struct poll_policy *p);

/* A request was posted that nothing will acknowledge. */
void poll_policy_unanswered(struct poll_policy *p, uint64_t now_ns);
/* Were so many such requests posted that the thread has to look at posts that
 * wait? */
bool poll_policy_wants_minding(const struct poll_policy *p);
/* The thread is about to sleep: returns when it has to look at posts that wait,
 * or UINT64_MAX. */
uint64_t poll_policy_mind(struct poll_policy *p, uint64_t now_ns);

/*
 * The thread's look has ended.  @bulk and @news: stream.bulk and looks.news
 * from before it.
 */
void poll_policy_rested(struct poll_policy *p, uint64_t bulk, uint32_t news,
			uint64_t now_ns);
/* The thread is about to sleep: notes until when the backoff forbids its next
 * look.  @is_behind: the last look left datagrams, which end the backoff. */
void poll_policy_sleeps(struct poll_policy *p, bool is_behind);
/*
 * After a look of the thread: measures how long a look without a find takes.
 * The thread's waits before it sleeps were tuned on a machine where such a look
 * takes POLL_POLICY_LOOK_NS; where a look takes longer, a wake-up takes longer
 * too, much longer on an emulated machine.
 */
void poll_policy_thread_looked(struct poll_policy *p, uint64_t now_ns);
/* @ns on a machine of this slowness. */
static inline uint64_t poll_policy_scaled(const struct poll_policy *p,
					  uint64_t ns)
{
	return ns * p->thread.slowness;
}
/*
 * Returns for how many ns the thread should look again rather than sleep: a
 * stream came a moment ago, so more will, and a wake-up costs its sender more
 * than a look costs the thread.
 */
uint64_t poll_policy_lingers(const struct poll_policy *p, uint64_t now_ns);
/* Does the backoff forbid the thread a look? */
bool poll_policy_pauses(const struct poll_policy *p, uint64_t now_ns);

#endif
