/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state that src/direct keeps in a queue pair and in the adapter's
 * transport: requests to peers of this host without packets.  The other files
 * of this folder read the member `path` alone.  Lock: as struct
 * ibt_qp.
 */
#ifndef IBT_DIRECT_STATE_H
#define IBT_DIRECT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/access.h"
#include "util/list.h"
#include "util/serial24.h"
#include "util/shared.h"

struct map;
struct target_ref; /* direct/target.h */

/* How the requests of a QP go, for the whole life of a connection. */
enum ibt_path {
	IBT_PATH_UNDECIDED, /* the host has yet to find the peer's process */
	IBT_PATH_PACKETS,
	IBT_PATH_DIRECT
};

/* In each struct ibt_qp. */
struct direct_state {
	enum ibt_path path;
	uint64_t path_since_ns; /* when the wait for the decision began */
	/* On direct_queues.waiting: the QP waits for its peer (no receive, not
	 * ready, an atomic under way, another process in its lock). */
	struct list waiting;
	/* On direct_queues.leaving: the QP waits for peers that are inside. */
	struct list leaving;
	uint64_t leaving_since_ns;
	/* The request at the cursor has begun to wait for peers that use the
	 * memory it is about to withdraw (ibt/local_wr.h); `scan` is the
	 * position. */
	bool awaits_accesses;
	struct access_scan scan;
	/* The target: owned; NULL before the first request.  UD: the target
	 * used last. */
	struct target_ref *link;
	/* UD: all targets by QPN, owned, or NULL; and the QPN of the target to
	 * which the request at the cursor goes by packets, or 0. */
	struct map *targets;
	uint32_t packets_to;
	struct {
		/* The number of the lock that excludes other calls: below
		 * ENGINE_POST_LOCKS; set when the QP is created. */
		uint32_t lock;
		/* initiator_post_apart may execute requests.  Written under the
		 * progress lock; other threads read it as a hint. */
		shared_flag is_worth_it;
		bool is_running; /* initiator_post_apart executes a request */
		/* A completion of such a request asks for more than its entry
		 * in the queue: an event is due, or the queue is full. */
		bool has_news;
		uint64_t now_ns; /* the time of such a request */
		/* The last small WRITEs or READs took a system call. */
		bool takes_calls;
		/* The atomic at the cursor was executed, and the value that it
		 * found has yet to be placed. */
		bool has_found;
		uint64_t found;
	} apart;
};

/* In struct ibt: the QPs of one progress lock. */
struct direct_queues {
	struct list waiting; /* struct ibt_qp, by direct_state.waiting */
	struct list unused;  /* struct target_ref that no QP uses any more */
	struct list leaving; /* struct ibt_qp, by direct_state.leaving */
	uint64_t leaving_look_ns; /* when `leaving` was last looked at */
	bool is_used;	/* a request has come or gone without packets */
	uint32_t piece; /* bytes that one visit moves at most */
};

/* The state that engine/shm_ack keeps in each struct ibt_qp: ACKs to peers of
 * this host that a shared page carries instead of packets. */
struct shm_ack_state {
	struct serial24 sent;  /* the ePSN of the last ACK packet */
	struct serial24 taken; /* up to where the peer has read the page */
	struct serial24 rode;  /* the ePSN when a request last went ahead */
	uint64_t waits_ns;     /* until when an ACK packet may be held back */
	/* Until when it may wait behind a request of ours; 0: behind none. */
	uint64_t rides_ns;
};

#endif
