/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress: the loop between the engine and the socket.  A program's post or
 * poll makes progress, or the progress thread does; no thread waits for the
 * progress lock to do so.  A doorbell that finds the lock held is left for the
 * holder:
 *
 *	thread that posts                holder of the lock
 *	push the QP onto `doorbells`     make progress
 *	try the lock, else return        give the lock
 *	                                 doorbells? try the lock again
 *
 * The thread tries the lock after its push, and the holder looks at the
 * doorbells after it gave the lock, so one of the two serves the doorbell.
 *
 * A plain request to a process of this host needs no progress lock but the post
 * lock of its queue pair (docs/decisions/026).
 */
#ifndef HOST_PROGRESS_H
#define HOST_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "host/addresses.h"
#include "host/clock.h"
#include "host/direct_select.h"
#include "host/host.h"
#include "host/poll_policy.h"
#include "host/post_lock.h"
#include "host/stream_set.h"
#include "util/lock.h"
#include "util/mpsc.h"
#include "util/shared.h"
#include "wire/udp.h"

#define PROGRESS_TICK_NS 64 /* the unit of progress_activity's times */
#define PROGRESS_AHEAD	 4  /* packets unacknowledged: the poster is ahead */

/* Linux lets a socket join 20 IPv4 groups, each interface counted. */
#define PROGRESS_GROUPS HOST_MAX_GROUPS

/* A multicast group that the socket has joined. */
struct progress_group {
	uint8_t gid[16];
	/* bit i: on the interfaces of device i of device_list */
	uint32_t devices;
};

/* The events that end the sleep of the thread that waits for work. */
struct progress_wake {
	shared_flag is_resting; /* a thread waits, or is about to */
	uint64_t at_ns;		/* when the thread looks without a wake-up */
	/* the thread also waits for room in this socket; -1: none */
	int awaited_fd;
	uint32_t link_at; /* broker_link_changes when the wait began */
	/* the eventfd that wakes the thread; -1 before the thread runs */
	int fd;
};

/* The program's activity, which other threads read without the lock. */
struct progress_activity {
	/* when the program last polled, in PROGRESS_TICK_NS */
	shared_u32 polled;
	shared_flag is_hungry; /* the last poll found no completion */
	/* when the program last posted, in PROGRESS_TICK_NS */
	shared_u32 posted;
	shared_u32 posted_on; /* the processor of the last post */
	shared_u32 events;    /* how many events of completions were reported */
	/* The progress thread will look soon: ACKs may be held. */
	shared_flag is_watched;
};

/* Datagrams that were received and not yet given to the engine. */
struct progress_batch {
	struct udp_dgram got[UDP_BATCH];
	uint32_t count, next;
};

/* What the user or the front end was told, once. */
struct progress_said {
	bool junk; /* somebody sends junk to the port */
	bool loss; /* the program has closed adverb's descriptors */
};

/* Owner: struct host.  All members without a lock of their own are guarded by
 * `lock`. */
struct progress {
	struct lock lock;
	bool is_shielded;      /* the holder cannot be cancelled */
	int cancel;	       /* the holder's cancel state from before */
	struct engine *engine; /* owned */
	struct udp wire;
	struct clock clock;
	uint64_t now_ns; /* when the present holder took the lock */
	uint64_t last_turn_ns, published_ns;
	uint64_t checked_ns; /* when progress_has_files was asked last */
	struct poll_policy policy;
	/* The rest that the present turn is part of, or NULL. */
	const struct progress_rest *rest;
	struct addresses addresses;
	struct progress_wake wake;
	struct progress_activity activity;
	struct progress_batch batch;
	struct stream_set streams; /* the connections of iWARP devices */
	bool is_full; /* the socket took less than the engine had */
	struct progress_said said;
	struct host_sink sink;
	struct mpsc doorbells; /* QPs with new work; any thread pushes */
	struct direct_select direct_select;
	struct post_locks posts;
	struct progress_group groups[PROGRESS_GROUPS]; /* mcast_socket.h */
	uint32_t group_count;
};

/* 0: the struct owns the engine and fd; -errno: the caller keeps both. */
int progress_init(struct progress *p, struct engine *e, int fd,
		  const struct host_sink *sink, struct udp_offload allowed,
		  bool one_port);
/* Frees the engine and closes the socket.  No other thread uses p. */
void progress_fini(struct progress *p);
/* Are the descriptors still the files that were opened?  If not, progress
 * continues without the socket, and a sentence says so. */
bool progress_has_files(struct progress *p);
/* A program polls: makes progress if the lock is free.  @skipped counts, for
 * the object that is polled, the polls that made no progress. */
void progress_poll(struct progress *p, shared_u32 *skipped);
/* Does another thread hold the lock just now? */
bool progress_is_held(struct progress *p);
/* The time since a word of progress_activity was @tick; wraps after minutes. */
static inline uint64_t progress_ago_ns(uint32_t tick)
{
	return ((uint32_t)(clock_real() / PROGRESS_TICK_NS) - tick) *
	       (uint64_t)PROGRESS_TICK_NS;
}

/* A turn of the thread that is about to wait, and what it waits for. */
struct progress_rest {
	const struct host_sleep *sleep; /* if this is over, it does not wait */
	/* ACKs are held for what the program posts next, until a look at the
	 * socket finds nothing more. */
	bool holds_acks;
	bool is_deaf; /* the socket is empty, as the caller knows */
	/* Set by progress_rest: */
	bool is_over;	/* sleep is over */
	uint64_t until; /* when the next turn is due without a wake-up */
	bool minds;	/* posts may wait meanwhile: post_lock_is_lively */
	short events;	/* events of the socket that end the wait */
};

/* Makes progress before a wait.  False: the lock is not free.  True:
 * progress_rested is due. */
bool progress_rest(struct progress *p, struct progress_rest *r);
/* The thread does not wait any more. */
void progress_rested(struct progress *p);
/* Takes the progress lock and all post locks, waiting for them: for creation,
 * modification and destruction of objects. */
void progress_take(struct progress *p) ACQUIRE(&p->lock);
/* Sends and reports what the holder has caused, and gives the locks. */
void progress_give(struct progress *p) RELEASE(&p->lock);
/* Has the socket join datagrams (GRO), which lets its buffer hold more.  For a
 * process with a UC or UD QP, to which no peer sends a lost packet again. */
void progress_join(struct progress *p) REQUIRES(&p->lock);
/* Serves all doorbells, so that none names a QP that is about to go. */
void progress_serve_doorbells(struct progress *p) REQUIRES(&p->lock);
/* Serves all doorbells, and sends all that peers wait for: the QP or the
 * process may be about to go, and its peer would take a held ACK for lost. */
void progress_flush(struct progress *p) REQUIRES(&p->lock);
/* Receives all that has arrived, and then does the work of progress_flush: a
 * hardware adapter would have answered by now. */
void progress_catch_up(struct progress *p) REQUIRES(&p->lock);
/* Does the work of progress_catch_up when the process ends, if the lock is
 * free. */
void progress_quit(struct progress *p);
/* The program is about to sleep: sends what was left for its next poll. */
void progress_serve(struct progress *p);
/* Wakes the thread that waits for work, if one does. */
void progress_wake(struct progress *p);

#endif
