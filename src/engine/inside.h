/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of an engine, for the files of src/engine alone. */
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

/* Bytes that one engine_tx copies at most for requests that go direct. */
#define ENGINE_MOVED_MAX (4u << 20)

struct engine {
	struct ibt ibt;
	struct rocev2_senders senders;
	struct map qpns;    /* struct ibt_qp, by QPN */
	struct burst burst; /* frames that are not sent yet */
	/* Flow control within the host. */
	uint32_t (*class_of)(uint32_t qpn);
	uint32_t class;		/* this process's class */
	struct credit *credits; /* by class; NULL without class_of */
	struct credit *credit[BURST_FRAMES]; /* by frame of burst, or NULL */
	uint32_t charged[BURST_FRAMES];	     /* bytes charged for each frame */
	struct credit_inbox inbox;
	bool rx_is_known;	      /* is rx_class the present datagram's? */
	struct prefetch_turn rx_turn; /* the QP of the latest packets */
	uint32_t rx_class;	      /* the sender of the present datagram */
	struct shm_ack shm_ack;
	struct sources sources;
	struct suspects suspects;
	/* QPs that wait for credit: struct ibt_qp, by `active`. */
	struct list starved;
	uint64_t starved_ns; /* when to try them again; UINT64_MAX: none */
	uint32_t wanted_qpn; /* engine_wants_page; 0: none */
	/* Active QPs whose requests go over a byte stream: struct ibt_qp, by
	 * `active`. */
	struct list streams;
	/* Requests that go direct (direct/initiator.h). */
	bool is_direct; /* engine_config.direct */
	/* QPs that wait for the host's decision, struct ibt_qp by
	 * direct.waiting: those that engine_wants_path has yet to return, and
	 * those that it has returned. */
	struct {
		struct list undecided, asked;
	} paths;
	struct list kicks; /* struct target_ref, for engine_kick */
	uint64_t look_ns;  /* when to look at peers; UINT64_MAX: never */
	uint64_t moved;	   /* in this engine_tx, see ENGINE_MOVED_MAX */
};

static inline struct ibt_qp *engine_find(const struct engine *e, uint32_t qpn)
{
	return map_find(&e->qpns, qpn);
}

/* Handles d, a packet that was parked until its source was known (rx.c). */
void engine_rx_parked(struct engine *e, const struct engine_dgram *d,
		      uint16_t id, uint64_t now_ns);

/*
 * Executes the requests of q that go direct, at most ENGINE_MOVED_MAX bytes in
 * one engine_tx, which holds the progress lock.  False: q has no packets to
 * send.
 */
bool engine_serve_directly(struct engine *e, struct ibt_qp *q, uint64_t now_ns);

#endif
