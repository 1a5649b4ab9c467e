/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state by which src/direct sends requests to peers of this host without
 * packets: struct direct_state in each struct ibt_qp, struct direct_queues in
 * struct ibt.  Owner: the engine.  Lock: as struct ibt_qp.
 */
#ifndef IBT_DIRECT_STATE_H
#define IBT_DIRECT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/access.h"
#include "hca/wq.h"
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
	/* On direct_queues.waiting: the QP waits for its peer, which has no
	 * receive, is not ready, has an atomic under way, or has another
	 * process in its responder lock. */
	struct list waiting;
	/* On direct_queues.leaving: the QP waits until peers have left its
	 * responder lock, or memory that it withdraws. */
	struct list leaving;
	uint64_t leaving_since_ns; /* when that wait began */
	/* The request at the cursor has withdrawn a key (ibt/local_wr.h) and
	 * waits for peers that still use the key; `scan` says which peers have
	 * been looked at. */
	bool awaits_accesses;
	struct access_scan scan;
	/* The target: owned; NULL before the first request.  UD: the target
	 * used last. */
	struct target_ref *link;
	/* UD: all targets by QPN, owned, or NULL. */
	struct map *targets;
	/* UD: the destination QPN of the datagram whose path
	 * initiator_ud_turn looked up last; 0: none. */
	uint32_t packets_to;
	struct {
		/* The number of the lock that excludes other calls: below
		 * ENGINE_POST_LOCKS; set when the QP is created. */
		uint32_t lock;
		/* initiator_post_apart may execute requests of this QP.
		 * Written under the progress lock; other threads read the flag
		 * as a hint. */
		shared_flag is_worth_it;
		bool is_running; /* initiator_post_apart executes a request */
		/* A completion of such a request asks for more than its entry
		 * in the queue: an event is due, or the queue is full. */
		bool has_news;
		uint64_t now_ns; /* the time of the present request */
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
	bool is_used;	   /* a request has come or gone without packets */
	uint32_t piece;	   /* bytes that are copied at most under one lock */
	bool has_no_eager; /* SENDs of few bytes go as other SENDs do */
};

/* May a SEND of so many bytes go as an eager message (hca/eager.h)? */
static inline bool direct_state_may_be_eager(const struct direct_queues *d,
					     uint32_t bytes)
{
	return bytes <= WQE_EAGER_BYTES && !d->has_no_eager;
}

/* The state that engine/shm_ack keeps in each struct ibt_qp: shm acks, which
 * peers of this host read in a page instead of packets. */
struct shm_ack_state {
	struct serial24 sent;  /* the ePSN of the last ACK packet */
	struct serial24 taken; /* the peer has taken all before this PSN */
	/* The ePSN when request_until_ns was set. */
	struct serial24 request_epsn;
	/* Until when an ACK packet may wait while the peer reads the page. */
	uint64_t reader_until_ns;
	/* Until when an ACK packet may wait for the peer to handle a request of
	 * this QP, upon which the peer reads the page; 0: no request is under
	 * way. */
	uint64_t request_until_ns;
};

#endif
