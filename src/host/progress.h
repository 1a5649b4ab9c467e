/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress: the loop between the engine and the socket.  Posts and polls of the
 * program make progress, and so does the progress thread.  A thread that finds
 * the progress lock held does not wait for it as a rule, but leaves its new
 * work to the holder of the lock:
 *
 *	thread that posts                holder of the lock
 *	push the QP onto `doorbells`     make progress
 *	try the lock, else return        release the lock
 *	                                 doorbells? try the lock again
 *
 * The thread that posts tries the lock after its push, and the holder looks at
 * `doorbells` after it has released the lock, so one of the two serves the
 * doorbell.
 *
 * A plain request to a process of this host needs only the post lock of its
 * queue pair, not the progress lock (docs/decisions/026).
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
#include "util/monotonic.h"
#include "util/mpsc.h"
#include "util/shared.h"
#include "wire/udp.h"

#define PROGRESS_TICK_NS 64 /* the unit of progress_activity's times */
/* If a QP has this many unacknowledged packets or more, small posts to it may
 * wait for more posts. */
#define PROGRESS_AHEAD 4

/* The most groups in struct progress_groups. */
#define PROGRESS_GROUPS HOST_MAX_LID_GROUPS

/* A multicast group that the process has joined. */
struct progress_group {
	uint8_t gid[16];
	/* Bit i is set if the socket has joined the group on the interfaces of
	 * device i of device_list. */
	uint32_t devices;
	/* Bit n is set if the data end of port n of the InfiniBand device has
	 * joined the group. */
	uint32_t ports;
};

struct progress_groups {
	/* The first `count` are in use. */
	struct progress_group all[PROGRESS_GROUPS];
	uint32_t count; /* how many groups the process has joined */
};

/* The events that end the sleep of the thread that waits for work. */
struct progress_wake {
	shared_flag is_resting; /* a thread waits, or is about to */
	/* When the wait ends without an event, except that a broker's timer may
	 * end the wait earlier; 0: the wait ends at once. */
	uint64_t at_ns;
	/* The thread waits for POLLOUT of this descriptor: of a full socket, or
	 * of the eventfd of a full ring (link_ring.h); -1: of none. */
	int awaited_fd;
	/* The engine was choked when the wait began, so no datagram and no
	 * packet ends the wait. */
	bool is_deaf;
	uint32_t link_at;    /* broker_link_changes when the wait began */
	uint32_t streams_at; /* stream_set.waits_on when the wait began */
	/* The eventfd that wakes the thread; -1 while no progress thread
	 * runs. */
	int fd;
};

/* The program's activity, which other threads read without the lock. */
struct progress_activity {
	/* when the program last polled, in PROGRESS_TICK_NS */
	shared_u32 polled;
	shared_flag polled_in_vain; /* the last poll found no completion */
	/* when the program last posted, in PROGRESS_TICK_NS */
	shared_u32 posted;
	/* The processor that the last post ran on; UINT32_MAX: no post yet. */
	shared_u32 posted_on;
	shared_u32 events; /* how many completion events were reported */
	/* The program makes progress, and the progress thread naps for at most
	 * a millisecond at a time.  After a nap that thread looks at the socket
	 * if the program makes no progress any more.  So ACKs may be held back
	 * for what the program posts next. */
	shared_flag is_watched;
	/* tx.full_fd is a descriptor: the last frames wait for room in a socket
	 * or in the ring to a fabric. */
	shared_flag is_full;
	/* A poll has found is_full set, and is in its yield of the core. */
	shared_flag yields_for_room;
};

/* Datagrams that were received: got[next] to got[count - 1] were not given to
 * the engine yet. */
struct progress_batch {
	struct udp_dgram got[UDP_BATCH];
	uint32_t count, next;
};

/* The frames that transmit_frames sends.  They would take 20 KB of the stack of
 * a program's thread, which may have only 16 KB in all. */
struct progress_frames {
	struct engine_frame made[UDP_BATCH];
	struct udp_dgram sent[UDP_BATCH]; /* those of `made` that go by UDP */
	/* The descriptor that has POLLOUT once there is room for the frames of
	 * the last send that a full socket or ring did not take (that of a ring
	 * only after fabric_link_wants_room); -1: all frames were sent. */
	int full_fd;
};

/* Which reports were made; each is made once. */
struct progress_said {
	bool junk;  /* the message that somebody sends junk to the port */
	bool fatal; /* the call of host_sink.fatal */
};

/* Owner: struct host.  All members without a lock of their own are guarded by
 * `lock`. */
struct progress {
	struct lock lock;
	bool is_shielded; /* shield_holder made the holder uncancellable */
	int cancel;	  /* the holder's cancel state before shield_holder */
	struct engine *engine; /* owned */
	struct udp_socket wire;
	struct clock clock;
	uint64_t now_ns; /* when the present holder took the lock */
	/* last_turn_ns: when the last progress_turn began.
	 * published_ns: when the counters were last published. */
	uint64_t last_turn_ns, published_ns;
	/* When a thread that took the lock last called progress_has_files. */
	uint64_t checked_ns;
	struct poll_policy policy;
	/* The argument of the progress_rest that makes the present turn; NULL:
	 * another function makes it. */
	const struct progress_rest *rest;
	struct addresses addresses;
	struct progress_wake wake;
	struct progress_activity activity;
	struct progress_batch batch;
	struct stream_set streams; /* the connections of iWARP devices */
	struct progress_frames tx;
	struct progress_said said;
	struct host_sink sink;
	struct mpsc doorbells; /* QPs with new work; any thread pushes */
	struct direct_select direct_select;
	struct post_locks posts;
	struct progress_groups groups;
	/* The device whose ports the link to a fabric changes; NULL: none.
	 * Borrowed from device_list. */
	const struct device *ib;
};

/*
 * Prepares *p.  @fd: the receive socket; @sink: copied; @allowed: the offloads
 * that the socket may use; @one_port: all datagrams have the same source port.
 * Takes ownership of fd.  Returns 0, and *p owns the engine; or -errno, and the
 * caller keeps the engine.
 */
int progress_init(struct progress *p, struct engine *e, int fd,
		  const struct host_sink *sink, struct udp_offload allowed,
		  bool one_port);
/* Publishes the counters, drains the streams, closes their connections and the
 * socket, and frees the engine.  No other thread uses p. */
void progress_fini(struct progress *p);
/* Do the descriptors of the sockets and the eventfd still refer to adverb's
 * files?  If not, progress continues without the socket, and a message tells
 * the user. */
bool progress_has_files(struct progress *p);
/* Did the last turn leave datagrams or packets that the engine can take now? */
bool progress_is_behind(const struct progress *p);
/* Called by a poll of the program: makes progress if the lock is free, unless
 * the poll may skip progress (direct_select_may_skip).  After many polls in a
 * row that found the lock held, waits for the lock.  *skipped: how many polls
 * of the polled object in a row made no progress. */
void progress_poll(struct progress *p, shared_u32 *skipped);
/* Does another thread hold the lock just now? */
bool progress_is_held(struct progress *p);
/* Returns how many ns ago the time @tick of progress_activity was; wraps after
 * some minutes. */
static inline uint64_t progress_ago_ns(uint32_t tick)
{
	return ((uint32_t)(monotonic_ns() / PROGRESS_TICK_NS) - tick) *
	       (uint64_t)PROGRESS_TICK_NS;
}

/* The arguments and results of progress_rest, which the leader (leader.h) calls
 * before it waits. */
struct progress_rest {
	/* The leader does not wait if sleep->is_over returns true. */
	const struct host_sleep *sleep;
	/* ACKs are held back for what the program posts next, until a look at
	 * the socket finds nothing more. */
	bool holds_acks;
	bool socket_is_empty; /* the caller knows that the socket is empty */
	/* The members below are results. */
	bool is_over;	/* sleep->is_over has returned true */
	uint64_t until; /* when the wait ends without an event */
	/* Posts may wait during the leader's wait, so the leader calls
	 * post_lock_is_lively each POST_GATHER_MIND_NS. */
	bool serves;
	/* POLLIN: packets end the wait.  POLLOUT: room at
	 * progress_wake.awaited_fd ends the wait. */
	short events;
};

/* Makes progress, and plans the wait of the caller, which is the leader.
 * False: the locks were not all free, and no wait is planned.  True: unless
 * r->is_over is set, the caller calls progress_rested after its wait, or
 * instead of it. */
bool progress_rest(struct progress *p, struct progress_rest *r);
/* Called by the leader once it does not wait any more. */
void progress_rested(struct progress *p);
/* Waits for the progress lock and all post locks, and takes them: for creation,
 * modification and destruction of objects. */
void progress_take(struct progress *p) ACQUIRE(&p->lock);
/* Sends the frames and reports the events that the holder has caused, and
 * releases the locks. */
void progress_give(struct progress *p) RELEASE(&p->lock);
/* Makes the socket join datagrams (GRO), so that its buffer holds more.  Called
 * when the process gets a UC or UD QP, because a packet that such a QP loses is
 * not sent again. */
void progress_join(struct progress *p) REQUIRES(&p->lock);
/* Tells the engine of all QPs in `doorbells`.  Called before a QP is destroyed,
 * so that `doorbells` does not name it any more. */
void progress_serve_doorbells(struct progress *p) REQUIRES(&p->lock);
/* Serves all doorbells, and sends all responses, also ACKs that are held back.
 * Called before a QP is modified and before a QP or the process ends: a peer
 * would take a held ACK for lost. */
void progress_flush(struct progress *p) REQUIRES(&p->lock);
/* Receives all packets that have arrived, and then does the work of
 * progress_flush.  Called before a QP is destroyed or modified to RESET or ERR,
 * because a hardware adapter would have answered these packets by now.  A QP of
 * an iWARP device has no packets, and needs progress_flush alone. */
void progress_catch_up(struct progress *p) REQUIRES(&p->lock);
/* Called when the process ends: does the work of progress_catch_up, waits at
 * most a second until a full socket takes the remaining frames, drains the
 * streams and publishes the counters.  Does nothing unless the lock and all
 * post locks become free within a second: the calling thread may itself have
 * one of them, if a handler of a signal has called exit(3). */
void progress_quit(struct progress *p);
/* Called before the last user of the host ends: waits at most a second until a
 * full socket takes the remaining frames. */
void progress_send_rest(struct progress *p);
/* Serves the doorbells, if there are any and the lock is free.  Called before
 * the program sleeps, because work may wait for the program's next poll.  Also
 * called by a thread that has pushed a doorbell under a post lock, and by a
 * leader that has found one of the locks taken. */
void progress_serve(struct progress *p);
/* Wakes the thread that waits for work, if one does. */
void progress_wake(struct progress *p);

#endif
