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

/* Bytes that an engine_tx moves without packets. */
#define ENGINE_MOVED_MAX (4u << 20)

struct engine {
	struct ibt ibt;
	struct rocev2_senders senders;
	struct map qpns;    /* of struct ibt_qp, by QPN */
	struct burst burst; /* offered and not yet sent */
	/* Flow control within the host. */
	uint32_t (*class_of)(uint32_t qpn);
	uint32_t class;		/* ours */
	struct credit *credits; /* by class; NULL without class_of */
	struct credit *credit[BURST_FRAMES]; /* of each frame, or NULL */
	uint32_t charged[BURST_FRAMES];
	struct credit_inbox inbox;
	bool rx_is_known;	      /* the present datagram's sender */
	struct prefetch_turn rx_turn; /* the sender of the latest ones */
	uint32_t rx_class;
	struct shm_ack shm_ack;
	struct sources sources;
	struct suspects suspects;
	struct list starved; /* struct ibt_qp, by `active` */
	uint64_t starved_ns; /* when to try them again; UINT64_MAX: none */
	uint32_t wanted_qpn; /* engine_wants_page; 0: none */
	/* Within the host without packets, near.h. */
	bool is_direct;
	struct list undecided; /* struct ibt_qp, by `nearby`; */
	struct list asked;     /* and those that the host knows of */
	struct list kicks;     /* struct target_ref */
	uint64_t look_ns;      /* when to look after peers; UINT64_MAX: never */
	uint64_t moved;	       /* in this engine_tx, see ENGINE_MOVED_MAX */
};

static inline struct ibt_qp *engine_find(const struct engine *e, uint32_t qpn)
{
	return map_find(&e->qpns, qpn);
}

/* Handles again a packet of d whose source was in question (rx.c). */
void engine_rx_parked(struct engine *e, const struct engine_dgram *d,
		      uint16_t id, uint64_t now_ns);

/*
 * The requests of q that go directly; false when no packets are left to send.
 * One engine_tx moves a bounded number of bytes: it holds the progress lock.
 */
bool engine_serve_directly(struct engine *e, struct ibt_qp *q, uint64_t now_ns);

#endif
