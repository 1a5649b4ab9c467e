/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop between the engine and the wire.  Whoever has a reason turns it:
 * a program's post or poll, or our thread; nobody waits for the lock, a
 * doorbell that finds it held is left for the holder:
 *
 *	ringer: push onto bells          holder: turn the lane
 *	        try the lock, else go            give the lock
 *	                                         bells? try the lock again
 *
 * The ringer tries after its push and the holder looks after its release, so
 * one of the two sees it.
 */
#ifndef HOST_PROGRESS_H
#define HOST_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "host/clock.h"
#include "host/host.h"
#include "host/rx_backoff.h"
#include "util/lock.h"
#include "util/mpsc.h"
#include "util/shared.h"
#include "host/direct_select.h"
#include "wire/udp.h"

#define PROGRESS_TICK_NS   64
#define PROGRESS_LINGER_NS 40000
#define PROGRESS_STREAM	   8	 /* a streak of so many is a stream */
#define PROGRESS_AHEAD	   4	 /* packets unanswered: the poster is ahead */
#define PROGRESS_GATHER	   32768 /* bytes, so much does not wait */

/* Linux lets a socket join 20 IPv4 groups, each interface counted. */
#define PROGRESS_GROUPS HOST_MAX_GROUPS

struct progress_group {
	uint8_t gid[16];
};

struct progress {
	struct lock lock;
	bool is_shielded;      /* its holder is not cancelled: */
	int cancel;	       /* pthread_setcancelstate's of before */
	struct engine *engine; /* owned, GUARDED_BY(lock) */
	struct udp wire;       /* the same */
	struct clock clock;
	uint64_t now_ns; /* when its present holder took it */
	uint64_t last_turn_ns, published_ns;
	uint64_t bulk;	    /* datagrams with much at once, either way; */
	uint64_t inflow;    /* those received since we sent as much */
	uint64_t linger_ns; /* progress_lingers until then, */
	uint64_t pause_ns;  /* and progress_pauses */
	struct rx_backoff rx_backoff; /* of the looks at the socket; */
	shared_flag is_paced; /* a poll now finds next to nothing to do */
	bool is_dry;	      /* the last turn left nothing there, */
	uint32_t dry_looks;   /* nor did so many before it; */
	const struct progress_rest *rest; /* of who minds it, in this turn */
	uint64_t looked_ns;    /* when the socket was last looked at, */
	uint32_t in_vain;      /* and looks before it that found nothing */
	uint64_t rest_ns;      /* when our thread looked last; these are its, */
	uint64_t heard_ns;     /* when that found something, */
	uint64_t look_ns;      /* what its looks in vain take, */
	uint32_t slowness;     /* and so many times as long as they might */
	uint8_t last_from[16]; /* who sent last, and from this host? */
	bool last_is_local;
	uint32_t last_at; /* at this netif_version */
	bool is_full;	  /* the socket took less than we had */
	uint64_t wake_ns; /* when the resting thread will look again */
	int awaited_fd;	  /* or when this socket has room; -1: none */
	uint32_t peer_at; /* broker_link_changes, when it went to rest */
	shared_flag is_resting;
	int wake_fd; /* its eventfd; -1 before it runs */
	bool is_junk_said, is_lost_told;
	struct host_sink sink;
	struct mpsc bells;   /* QPs with new work */
	shared_u32 gathered; /* bytes of it that may wait, roughly */
	/* Requests of UC and UD: so many without a pause, the last one then;
	 * and our thread looks soon for those that gather meanwhile. */
	uint32_t unanswered;
	uint64_t unanswered_ns;
	shared_flag is_minded;
	struct udp_dgram got[UDP_BATCH]; /* a batch under way, */
	uint32_t got_count, got_next;	 /* if the engine is choked */
	uint32_t still, posts;		 /* polls, progress_poll; of a stream */
	struct direct_select direct_select;
	struct progress_group groups[PROGRESS_GROUPS]; /* mcast_socket.h */
	uint8_t own[16]; /* the last address found to be a device's, */
	uint32_t own_at; /* at this netif_version, */
	uint32_t own_device;
	uint32_t group_count;
	shared_u32 news;   /* turns that received something */
	shared_u32 told;   /* events of completions, so many */
	shared_u32 polled; /* when the program last did, in PROGRESS_TICK_NS */
	shared_flag is_hungry; /* and it found nothing */
	shared_u32 posted;     /* when the program last posted, */
	shared_u32 posted_on;  /* and on which core */
	shared_u32 streak;     /* much sent, again and again, and little got */
	/* Our thread will look soon: what is held is not forgotten. */
	shared_flag is_watched;
	uint64_t checked_ns; /* when progress_has_files was asked last */
};

/* Takes the engine and fd; 0 or -errno. */
int progress_init(struct progress *l, struct engine *e, int fd,
		  const struct host_sink *sink, struct udp_offload allowed,
		  bool one_port);
void progress_fini(struct progress *l);
/* Are its descriptors what they were when they were opened?  If not, it goes on
 * without the wire, and the program is told. */
bool progress_has_files(struct progress *l);
/* For the program that polls: turn it if it is free. */
void progress_poll(struct progress *l);
/* Does another thread turn it just now?  A turn may take long. */
bool progress_is_held(struct progress *l);
/* Since lane->polled was what it is; good for minutes. */
uint64_t progress_ago_ns(uint32_t polled);
/* How who minds the lane turns it before it waits. */
struct progress_rest {
	const struct host_sleep *sleep; /* over after the turn: no wait */
	/* ACKs are held for what the program posts next, until a look at the
	 * socket finds nothing more. */
	bool holds_acks;
	bool is_deaf; /* there is nothing in the socket */
	/* Says: */
	bool is_over;
	uint64_t until; /* when to turn it again, unless woken by */
	short events;	/* these of the socket, or the eventfd */
};

/* False if it is not free; else progress_rested is due. */
bool progress_rest(struct progress *l, struct progress_rest *r);
void progress_rested(struct progress *l);
/*
 * For our thread, after progress_rest: the time now.  What it waits before it
 * sleeps, of a stream aside, was found where a look in vain takes half a
 * microsecond; on a machine that is slower, to be woken takes longer too, much
 * where it is emulated.
 */
void progress_looked(struct progress *l, uint64_t now);
static inline uint64_t progress_scaled(const struct progress *l, uint64_t ns)
{
	return ns * l->slowness;
}
/*
 * For how long yet?  A stream came to our thread a moment ago, so more will: to
 * be woken costs the sender more than to look again costs us.
 */
uint64_t progress_lingers(const struct progress *l, uint64_t now);
/* And is it too soon for that? */
bool progress_pauses(const struct progress *l, uint64_t now);
/* Work of about `bytes`, headers included, was posted to q. */
void progress_doorbell(struct progress *l, struct ibt_qp *q, uint32_t bytes);
/* For creation, modification and destruction: wait for the lock; giving it
 * back sends and reports what the call has caused. */
void progress_take(struct progress *l) ACQUIRE(&l->lock);
void progress_give(struct progress *l) RELEASE(&l->lock);
/*
 * There is a QP to which nothing is sent anew: have the buffer hold as much as
 * it can, which joined datagrams do, from the beginning.
 */
void progress_join(struct progress *l) REQUIRES(&l->lock);
/* Serve all doorbells, so that none names a QP about to die. */
void progress_ring(struct progress *l) REQUIRES(&l->lock);
/* The same, and sends all that is owed: the QP or the process may be about to
 * go, and its peer would take an ACK that waits for lost. */
void progress_flush(struct progress *l) REQUIRES(&l->lock);
/* The same after all that has come: an adapter would have answered it. */
void progress_catch_up(struct progress *l) REQUIRES(&l->lock);
/* progress_catch_up when the process ends, if the lane is free. */
void progress_quit(struct progress *l);
/* The program is about to sleep: send what it left for its next poll. */
void progress_serve(struct progress *l);
/* Make the thread look again, if it sleeps. */
void progress_wake(struct progress *l);

#endif
