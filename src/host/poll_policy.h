/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides when progress looks at the socket, and when a thread that makes
 * progress may sleep.  This file only decides; the callers look, send and
 * sleep, and pass the time in.
 *
 *	a poll       poll_policy_is_full_turn, _skips_socket
 *	a post       poll_policy_post, _may_gather, _gathered, _waits
 *	a look       poll_policy_may_look; after it _looked
 *	a datagram   poll_policy_received, _sent
 *	the thread   poll_policy_rested, _thread_looked; _lingers, _pauses
 *	a yield      poll_policy_yielded; _is_crowded
 *
 * "The thread" is the thread that waits for work, the leader of leader.h.
 * "Bulk" is a datagram or run of datagrams that has POLL_POLICY_BULK bytes, or
 *a run of more than 8 datagrams of any size.  A stream is bulk after bulk in
 *one direction.  The sender of a stream seldom looks for ACKs, and the receiver
 * does not sleep soon after bulk.
 *
 * Owner: struct progress.  Lock: the progress lock.  Any thread reads the words
 * of type shared_u32 and shared_flag without the lock, and threads that post
 * add to `gathered` and set since_us without the lock.  Sans-IO.
 */
#ifndef HOST_POLL_POLICY_H
#define HOST_POLL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/rx_backoff.h"
#include "util/shared.h"

/* For how long after a datagram of a stream the thread does not sleep. */
#define POLL_POLICY_LINGER_NS 40000
#define POLL_POLICY_STREAM    8	     /* how often bulk makes a stream */
#define POLL_POLICY_GATHER    32768  /* bytes of posts that may wait together */
#define POLL_POLICY_SERVE_NS  100000 /* between looks at gathered posts */
/* The most bytes of a request that gains by waiting. */
#define POLL_POLICY_SMALL   8192
#define POLL_POLICY_LATE_NS 20000 /* a longer wait of a post is too long */
#define POLL_POLICY_BULK    16384 /* so many bytes of a datagram are bulk */
/* How long a look takes that finds nothing, if slowness is 1. */
#define POLL_POLICY_LOOK_NS 500
/* For how long a core counts as crowded after the first long yield. */
#define POLL_CROWD_NS 20000000u
/* For how long a core counts as crowded after a long yield, at most. */
#define POLL_CROWD_MAX_NS 320000000u

/* Counts bulk: datagrams, or runs of them, that the first comment names. */
struct poll_stream {
	uint64_t bulk;	   /* how often bulk was sent or received */
	uint64_t inflow;   /* how often bulk was received since some was sent */
	shared_u32 streak; /* how often bulk was sent since some was received */
	/* Until when the thread does not sleep, because of a stream. */
	uint64_t linger_ns;
	/* Counts posts in a stream, for poll_policy_post. */
	uint32_t posts;
};

/* Looks at the socket that progress makes in its turns, in any thread. */
struct poll_looks {
	struct rx_backoff backoff;
	shared_flag is_paced; /* the backoff forbids some looks */
	/* The last look left nothing in the socket, and the backoff has
	 * forbidden no look since. */
	bool is_dry;
	uint32_t dry_looks; /* how many looks in a row left nothing */
	uint64_t looked_ns; /* when the last look was */
	uint32_t in_vain;   /* looks in a row in vain, counted up to 3 */
	bool is_fixed;	    /* poll_policy_fix was called */
	uint32_t polls;	    /* counts polls, for poll_policy_is_full_turn */
	/* Counts looks that found something: at the socket, at iWARP
	 * connections, or at the link to a fabric. */
	shared_u32 news;
};

/* Looks by the thread that waits for work. */
struct poll_thread {
	uint64_t rest_ns;  /* when the last look began */
	uint64_t heard_ns; /* when the last look that found something began */
	uint64_t look_ns;  /* how long a look takes that finds nothing */
	uint32_t slowness; /* look_ns in units of POLL_POLICY_LOOK_NS */
	uint64_t pause_ns; /* until when the backoff forbids a look */
};

/* Doorbells of UC, UD and iWARP QPs, whose requests no packet acknowledges. */
struct poll_unanswered {
	/* How many doorbells progress has served, each within
	 * POLL_POLICY_SERVE_NS of the one before. */
	uint32_t count;
	uint64_t last_ns; /* when the last was served */
	/* The thread looks at gathered posts each POLL_POLICY_SERVE_NS. */
	shared_flag is_served;
	/* When the first of those that wait began to wait, in microseconds; the
	 * lowest bit is always set, because 0 means that none waits. */
	shared_u32 since_us;
	uint32_t forbidden; /* how many of the next doorbells are not counted */
	uint32_t penalty;   /* the next late group sets `forbidden` to this */
	/* Groups that have waited since the last late one. */
	uint32_t groups;
};

struct poll_policy {
	struct poll_stream stream;
	struct poll_looks looks;
	struct poll_thread thread;
	struct poll_unanswered unanswered;
	/* About how many bytes of posts wait together; several threads add to
	 * this without a lock, so an addition may get lost. */
	shared_u32 gathered;
};

/* Says whether the core of a thread that polls is crowded, that is, whether
 * other threads compute on the core.  All zeros: the core is not crowded. */
struct poll_crowd {
	uint64_t until_ns; /* until when the core counts as crowded */
	/* For how long the core counts as crowded after the last yield; 0: that
	 * yield was short. */
	uint64_t for_ns;
};

/* Starts a policy that has seen no traffic. */
void poll_policy_init(struct poll_policy *p);
/*
 * From here on the policy does not adapt to datagrams: none counts as bulk,
 * each poll may look at the socket, and no wait depends on how long a look
 * takes.  The rules of struct poll_unanswered stay.  A measurement with this
 * shows how much the policy gains by adapting.  Called before the first
 * datagram.
 */
void poll_policy_fix(struct poll_policy *p);

/* Called when a datagram of @len bytes was sent, or a run of datagrams of
 * @segment bytes each and @len bytes in total.  @segment may be 0 for a single
 * datagram. */
void poll_policy_sent(struct poll_policy *p, size_t len, size_t segment);
/* Called when a datagram of @len bytes was received, or a run of datagrams of
 * @segment bytes each and @len bytes in total.  @segment may be 0 for a single
 * datagram. */
void poll_policy_received(struct poll_policy *p, size_t len, size_t segment);
/* Should the socket join datagrams (GRO), because one look found @bytes bytes
 * in @count datagrams? */
bool poll_policy_joins(size_t bytes, size_t count);

/*
 * May a thread look at the socket now?  @is_behind: the last look left
 * datagrams, so the backoff is ignored.
 */
bool poll_policy_may_look(const struct poll_policy *p, bool is_behind,
			  uint64_t now_ns);
/*
 * Called after a look.  @bytes: the bytes of the datagrams that it found, or 0;
 * @is_dry: the look left the socket empty; @now_ns: when the look began;
 * @served_ns: when the engine had taken the datagrams, or now_ns for less than
 * POLL_POLICY_BULK bytes.
 */
void poll_policy_looked(struct poll_policy *p, size_t bytes, bool is_dry,
			uint64_t now_ns, uint64_t served_ns);
/* Called when bytes came over a connection of an iWARP device, or anything over
 * the link to a fabric. */
void poll_policy_news(struct poll_policy *p);
/* Called when the backoff forbade a look, so that it is not known whether the
 * socket is empty. */
void poll_policy_skipped(struct poll_policy *p);
/* Should peers be told that the socket is empty?  @waits: the caller is about
 * to wait for datagrams. */
bool poll_policy_is_empty(const struct poll_policy *p, bool waits);

/* Does this poll make a full turn, timers included?  One poll in eight does. */
bool poll_policy_is_full_turn(struct poll_policy *p);
/* Does a poll skip the socket?  True while this process sends a stream and the
 * last three looks found nothing: the ACKs then seem to come through shared
 * memory. */
bool poll_policy_skips_socket(const struct poll_policy *p);

enum poll_post {
	POLL_POST_SEND, /* send what was posted */
	POLL_POST_ACKS, /* first read the ACKs in shared memory */
	POLL_POST_TURN, /* a full turn, with a look at the socket */
};

/* Returns what a post has to do besides sending: while a program sends a stream
 * without a poll, its posts look for the ACKs. */
enum poll_post poll_policy_post(struct poll_policy *p, uint64_t now_ns);
/* May @bytes bytes that were posted wait for more?  Called without the progress
 * lock.  The caller needs no fence between its push of a doorbell and the load
 * of `gathered` here: an old value only makes a group of posts larger or
 * smaller. */
bool poll_policy_may_gather(const struct poll_policy *p, uint32_t bytes);
/* Called when @bytes bytes that were posted wait for more, without the progress
 * lock. */
void poll_policy_gathered(struct poll_policy *p, uint32_t bytes);
/* Called when a request waits that no packet will acknowledge, without the
 * progress lock.  @now_ns: used only if poll_policy_is_waiting returns false.
 */
void poll_policy_waits(struct poll_policy *p, uint64_t now_ns);
/* Does a request wait that no packet will acknowledge?  Called without the
 * progress lock. */
bool poll_policy_is_waiting(const struct poll_policy *p);
/*
 * Called when all posts that wait are sent.  If a request that no packet will
 * acknowledge has waited for POLL_POLICY_LATE_NS, the program polls too seldom,
 * and such requests do not wait for a while: during the next 1024 doorbells of
 * them, and after each further delay during twice as many, at most 16384.  Each
 * 16 groups in a row without a delay halve that number, down to 1024.
 */
void poll_policy_scattered(struct poll_policy *p, uint64_t now_ns);

/* Called when progress has served a doorbell of a UC, UD or iWARP QP, whose
 * requests no packet will acknowledge. */
void poll_policy_unanswered(struct poll_policy *p, uint64_t now_ns);
/* Called when a request of more than POLL_POLICY_SMALL bytes was posted that no
 * packet will acknowledge: the thread ends its looks at posts that wait, since
 * a large request that waits for such a look is only delayed. */
void poll_policy_large(struct poll_policy *p);
/* Should the thread begin to look at posts that wait, because many requests
 * came that no packet will acknowledge?  False if the thread looks already. */
bool poll_policy_wants_service(const struct poll_policy *p);
/* Called when the thread is about to sleep: returns when the thread has to look
 * at posts that wait; UINT64_MAX: the thread need not look. */
uint64_t poll_policy_serve(struct poll_policy *p, uint64_t now_ns);

/*
 * Called when the thread's look has ended.  @bulk and @news: stream.bulk and
 * looks.news before the look; @now_ns: when the look began.
 */
void poll_policy_rested(struct poll_policy *p, uint64_t bulk, uint32_t news,
			uint64_t now_ns);
/* Called when the thread is about to sleep: notes until when the backoff
 * forbids its next look.  @is_behind: the last look left datagrams, so the
 * backoff is ignored. */
void poll_policy_sleeps(struct poll_policy *p, bool is_behind);
/*
 * Called after a look of the thread: measures how long a look takes that finds
 * nothing.  The thread's waits before it sleeps were tuned on a machine where
 * such a look takes POLL_POLICY_LOOK_NS.  Where a look takes longer, for
 * example on an emulated machine, a wake-up takes longer too, and the waits are
 * scaled.
 */
void poll_policy_thread_looked(struct poll_policy *p, uint64_t now_ns);
/* Returns the wait of @ns ns, scaled for a machine of the measured slowness. */
static inline uint64_t poll_policy_scaled(const struct poll_policy *p,
					  uint64_t ns)
{
	return ns * p->thread.slowness;
}
/*
 * Returns for how many ns the thread should continue to look instead of
 * sleeping.  After a stream more datagrams will probably come soon, and a
 * wake-up costs their sender more than a look costs the thread.
 */
uint64_t poll_policy_lingers(const struct poll_policy *p, uint64_t now_ns);
/* Does the backoff forbid the thread a look? */
bool poll_policy_pauses(const struct poll_policy *p, uint64_t now_ns);

/*
 * Called after a yield of the core that began at @began_ns and took @took_ns.
 * If the yield took more than a millisecond, other threads computed meanwhile,
 * and the core counts as crowded for POLL_CROWD_NS.  If the yield before also
 * took more than a millisecond, the core counts as crowded for twice as long as
 * after that yield, up to POLL_CROWD_MAX_NS.  After a shorter yield the core
 * does not count as crowded.
 */
void poll_policy_yielded(struct poll_crowd *c, uint64_t began_ns,
			 uint64_t took_ns);
/* Does the core count as crowded? */
bool poll_policy_is_crowded(const struct poll_crowd *c, uint64_t now_ns);

#endif
