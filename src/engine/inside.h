/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of an engine, for the files of src/engine and for tests. */
#ifndef ENGINE_INSIDE_H
#define ENGINE_INSIDE_H

#include "encap/rocev2.h"
#include "engine/burst.h"
#include "engine/credit.h"
#include "engine/engine.h"
#include "engine/shm_ack.h"
#include "engine/source_check.h"
#include "engine/suspect.h"
#include "ibt/ibt.h"
#include "util/map.h"
#include "util/prefetch.h"

/* One engine_tx or engine_post_direct begins no piece of a direct request once
 * `moved` of struct engine has reached this value. */
#define ENGINE_MOVED_MAX (4u << 20)

_Static_assert(DIRECT_POST_LOCKS == ENGINE_POST_LOCKS,
	       "each post lock has a list of QPs");

/* Where a frame counts. */
struct frame_account {
	/* The member of `credits` for the receiver of the frame; NULL: the
	 * receiver is on another host, or `credits` is NULL. */
	struct credit *credit;
	uint32_t charged; /* bytes charged to `credit` */
	/* Where the packets of the frame count once they are sent; NULL:
	 * nowhere. */
	struct engine_counters *counters;
};

struct engine {
	struct ibt ibt;
	/* Notes about the senders of datagrams.  They tell whether a packet may
	 * have an IPv4 id other than the expected one. */
	struct rocev2_senders senders;
	struct map qpns;    /* struct ibt_qp, by QPN */
	struct burst burst; /* frames that are not sent yet */
	/* Flow control within the host. */
	uint32_t (*class_of)(uint32_t qpn);
	uint32_t class;		/* this process's class */
	struct credit *credits; /* owned, one per class; NULL: no class_of */
	struct frame_account account[BURST_FRAMES]; /* of frames of `burst` */
	struct credit_inbox inbox;
	/* The process that has sent the present datagram is known; rx_class is
	 * its class. */
	bool rx_is_known;
	struct prefetch_turn rx_turn; /* the QP of the latest packets */
	uint32_t rx_class;	      /* valid if rx_is_known */
	struct shm_ack shm_ack;
	struct sources sources;
	struct suspects suspects;
	/* QPs that wait for credit: struct ibt_qp, linked by `active`. */
	struct list starved;
	/* When the QPs on `starved` have to try again; UINT64_MAX: never. */
	uint64_t starved_ns;
	/* The next result of engine_wants_page; 0: none. */
	uint32_t wanted_qpn;
	/* Active QPs whose requests go over a byte stream: struct ibt_qp,
	 * linked by `active`. */
	struct list streams;
	/* Direct requests (direct/initiator.h). */
	bool is_direct; /* engine_config.direct */
	/* QPs that wait for engine_set_path: struct ibt_qp, linked by
	 * direct.waiting.  undecided: engine_wants_path has not returned them
	 * yet.  asked: it has. */
	struct {
		struct list undecided, asked;
	} paths;
	struct list to_wake; /* struct target_ref, for engine_wants_wake */
	/* When initiator_look is due next; UINT64_MAX: never. */
	uint64_t look_ns;
	/* Bytes that direct requests have copied in this engine_tx or
	 * engine_post_direct, plus MOVED_EACH (direct_path.c) for each piece or
	 * batch. */
	uint64_t moved;
};

/* Returns the QP with this QPN; NULL: there is none. */
static inline struct ibt_qp *engine_find(const struct engine *e, uint32_t qpn)
{
	return map_find(&e->qpns, qpn);
}

/* Returns the state of flow control for the receiver of packets to this QPN;
 * NULL: engine_config has no classes. */
static inline struct credit *engine_credit_of(const struct engine *e,
					      uint32_t qpn)
{
	return e->credits ? &e->credits[e->class_of(qpn) % CREDIT_CLASSES]
			  : NULL;
}

/* Handles d, one packet that source_check.c has kept until its source was
 * known.  @id: the packet's IPv4 identification. */
void engine_rx_parked(struct engine *e, const struct engine_dgram *d,
		      uint16_t id, uint64_t now_ns);

/*
 * Executes the direct requests of q.  Stops when e->moved has reached
 * ENGINE_MOVED_MAX, which limits how long the caller holds the progress lock.
 * False: q has no packets to send.
 */
bool engine_serve_directly(struct engine *e, struct ibt_qp *q, uint64_t now_ns);

#endif
