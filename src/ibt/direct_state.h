/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state with which src/direct sends requests to peers of this host without
 * packets: struct direct_state in each struct ibt_qp, struct direct_queues in
 * struct ibt.  Owner: the engine.  Lock: the progress lock together with the
 * post locks; the QP's post lock alone for engine_post_apart and
 * engine_resume_apart.
 */
#ifndef IBT_DIRECT_STATE_H
#define IBT_DIRECT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/access.h"
#include "hca/cq.h"
#include "hca/eager.h"
#include "hca/wq.h"
#include "util/list.h"
#include "util/serial24.h"
#include "util/shared.h"

struct map;
struct target_ref; /* direct/target.h */

/* How the requests of a QP go.  An RC QP keeps its path until its connection
 * ends, except that an RC QP by LID changes from direct to packets when the
 * subnet would no longer deliver its packets, or when this QP or its peer may
 * migrate.  UC changes from direct to packets when a request cannot be executed
 * directly.  UD has a path for each destination. */
enum ibt_path {
	IBT_PATH_UNDECIDED, /* src/host has yet to find the peer's process */
	IBT_PATH_PACKETS,
	IBT_PATH_DIRECT
};

/* How many post locks there are (ENGINE_POST_LOCKS). */
#define DIRECT_POST_LOCKS 16

/* The state in each struct ibt_qp. */
struct direct_state {
	/* UD: the path of the datagram at the cursor. */
	enum ibt_path path;
	/* When the wait for the choice of the path began. */
	uint64_t path_since_ns;
	/* By LID: the last answer of the subnet (engine_set_way). */
	struct hca_way way;
	/* The path is IBT_PATH_DIRECT, and the QP waits on a list of
	 * engine.paths, because the subnet has changed since `way` was set. */
	bool is_asking;
	/* After a wait with is_asking, the subnet has said that it would still
	 * deliver packets.  The next request is executed although the subnet
	 * may have changed since, as if its packets had left before that
	 * change.  Otherwise no request would be executed in a subnet that
	 * changes faster than it answers. */
	bool may_execute;
	/* is_closed: the peer's QP is destroyed or in ERR; is_gone: the peer's
	 * process has ended. */
	bool is_closed, is_gone;
	uint64_t closed_look_ns; /* is_closed: when the next look is allowed */
	/* On direct_queues.waiting while the QP waits for its peer: the peer
	 * has no receive posted, is not ready, is closed or has ended, the
	 * peer's process executes the request (target_ref.is_asked), or the
	 * request has to be run again (target_ref.is_busy).  On a list of
	 * engine.paths (engine/inside.h) while the QP waits for
	 * engine_set_path. */
	struct list waiting;
	/* On direct_queues.leaving: the QP waits until peers have released its
	 * responder lock, or no longer use memory that the QP withdraws. */
	struct list leaving;
	uint64_t leaving_since_ns; /* when the QP was put on `leaving` */
	/* The request at the cursor has withdrawn a key (ibt/local_wr.h) and
	 * waits for peers that still use the key.  Such a request has begun, so
	 * it completes also in SQD. */
	bool awaits_accesses;
	/* Which peers were looked at while the request waits. */
	struct access_scan scan;
	/* The target of the requests, owned; NULL: there is none.  UD: the
	 * target that was used last, borrowed from `targets`. */
	struct target_ref *link;
	/* The last message that was too long for a receive's slot found a free
	 * bounce buffer of the target. */
	bool has_bounces;
	/* UD: all targets by QPN, owned; NULL: there are none. */
	struct map *targets;
	/* UD: the slot of `targets` at which initiator_ud looks next for links
	 * to give up. */
	uint32_t looked_at;
	/* UD: the destination QPN of the datagram whose path
	 * initiator_ud_turn looked up last; 0: none. */
	uint32_t packets_to;
	/* UD: since when the datagram with the index `wqe` of the send queue
	 * has waited for its target (target_ref.is_busy); since_ns is 0: no
	 * datagram has waited. */
	struct {
		uint32_t wqe;
		uint64_t since_ns;
	} busy;
	/* For initiator_apart_post and initiator_apart_resume, by which a
	 * thread executes requests without the progress lock. */
	struct {
		/* The number of the QP's post lock, below ENGINE_POST_LOCKS;
		 * set when the QP is created. */
		uint32_t lock;
		/* initiator_apart_post may execute requests of this QP.
		 * Written under the progress lock; other threads read the flag
		 * as a hint. */
		shared_flag is_worth_it;
		/* initiator_apart_post or initiator_apart_resume executes a
		 * request. */
		bool is_running;
		/* A request that was executed without the progress lock needs
		 * the lock after all: an event is due, or the completion queue
		 * is full. */
		bool has_news;
		uint64_t now_ns; /* the time of the present request */
		/* The last batch of requests took a system call. */
		bool takes_calls;
		/* The atomic at the cursor was executed, and the value that it
		 * found has yet to be placed. */
		bool has_found;
		uint64_t found; /* that value, if has_found */
	} apart;
	/* The wait for a receive of the peer (rnr_wait.h). */
	struct {
		/* On direct_queues.awaiting while the QP waits. */
		struct list node;
		/* When timers.rnr expires, while it is armed. */
		uint64_t timer_ns;
		/* timers.rnr and `waiting` belong to a wait that has ended. */
		bool is_old;
		/* A wait has begun since the timer was armed, while is_old was
		 * set. */
		bool is_used;
		/* When the last wait ends, or would have ended if it had not
		 * been ended early. */
		uint64_t until_ns;
		/* The peer's min_rnr_timer in ns, at the last wait that began
		 * while is_old was set. */
		uint64_t last_ns;
		/* When a poll of the program last looked whether the peer has
		 * a receive. */
		uint64_t looked_ns;
		/* The number of waits that engine_counters lacks yet. */
		uint32_t count;
		/* The last batch executed no request, because the peer had no
		 * receive; `timer` is then the peer's min_rnr_timer. */
		bool is_dry;
		uint8_t timer;
	} rnr;
};

/* The QPs that share one post lock and wait for a receive of their peers. */
struct direct_awaiting {
	/* struct ibt_qp, by direct_state.rnr.  Lock: the post lock. */
	_Alignas(HCA_APART) struct list qps;
	/* `qps` is not empty.  Threads that poll read this flag without a lock,
	 * as a hint. */
	shared_flag is_any;
};

/* The state in struct ibt, for the QPs of one progress lock. */
struct direct_queues {
	struct list waiting; /* struct ibt_qp, by direct_state.waiting */
	struct direct_awaiting awaiting[DIRECT_POST_LOCKS]; /* by number */
	struct list unused;  /* struct target_ref that no QP uses any more */
	struct list leaving; /* struct ibt_qp, by direct_state.leaving */
	/* When ibt_qp_end_waits has to look at `leaving`; UINT64_MAX: never. */
	uint64_t leaving_look_ns;
	/* A path was direct, or a peer has sent a request without packets. */
	bool is_used;
	/* The most bytes of a direct request that are copied in one hold of the
	 * responder lock. */
	uint32_t piece;
	bool has_no_eager; /* no SEND goes as an eager message */
	/* The subnet's number of changes (engine_subnet), borrowed; NULL: QPs
	 * by LID send packets. */
	const shared_u32 *changes;
};

/* May a SEND of this many bytes of the QP with the state s go as an eager
 * message (hca/eager.h)? */
static inline bool direct_state_may_be_eager(const struct direct_queues *d,
					     const struct direct_state *s,
					     uint32_t bytes)
{
	return bytes <= (s->has_bounces ? EAGER_MAX : WQE_EAGER_BYTES) &&
	       !d->has_no_eager;
}

/* The state that engine/shm_ack.h keeps in each struct ibt_qp for shm acks. */
struct shm_ack_state {
	struct serial24 sent; /* the ePSN when the last ACK packet was sent */
	/* The peer has read in this process's page that this QP has accepted
	 * all requests before this PSN. */
	struct serial24 taken;
	/* The ePSN when request_until_ns was set. */
	struct serial24 request_epsn;
	/* The peer's `accepted` when this QP entered RTR, which is no ACK for
	 * the present connection; 0: there was none. */
	uint64_t old_accepted;
	/* When the wait of an ACK packet ends, if it waits because the last ACK
	 * packet is still in flight, or because the peer reads the page. */
	uint64_t reader_until_ns;
	/* When the wait of an ACK packet ends, if it waits because this QP has
	 * sent the peer a request: the peer reads the page when the request
	 * comes.  0: no request is under way. */
	uint64_t request_until_ns;
};

#endif
