/* SPDX-License-Identifier: BSD-2-Clause */
/* What protocol code tells the outside: events for the front ends, and
 * counters. */
#ifndef HCA_EVENT_H
#define HCA_EVENT_H

#include <stdint.h>

#include "hca/explain.h"
#include "util/inaddr.h"

enum engine_event_type {
	ENGINE_CQ_EVENT, /* user: the cookie of the CQ */
	ENGINE_CQ_ERR,	 /* the same */
	ENGINE_QP_FATAL, /* user: the cookie of the QP */
	ENGINE_QP_REQ_ERR,
	ENGINE_QP_ACCESS_ERR,
	ENGINE_COMM_EST,
	ENGINE_SQ_DRAINED,
	ENGINE_LAST_WQE,
	ENGINE_SRQ_LIMIT, /* user: the cookie of the SRQ */
	ENGINE_EXPLAIN,	  /* explain is filled */
	ENGINE_ASK_PEER,  /* qpn of ours, peer and dest_qpn to ask about */
};

struct engine_event {
	enum engine_event_type type;
	uint64_t user;
	uint32_t qpn, dest_qpn;
	struct inaddr self, peer;
	struct explain explain;
};

/* The answer to ENGINE_ASK_PEER: does the process of the peer's QP live? */
enum engine_peer {
	ENGINE_PEER_UNKNOWN,
	ENGINE_PEER_ALIVE,
	ENGINE_PEER_GONE,
	/* The process lives, and has no such QP any more (engine/closed.h). */
	ENGINE_PEER_CLOSED,
	ENGINE_PEER_LEFT, /* rdma_cm was told that the connection ends */
};

/*
 * Signs that somebody guesses, or forges: packets that fit no connection, by
 * what is wrong with them.
 */
enum engine_sign {
	ENGINE_SIGN_NONE,
	ENGINE_SIGN_QPN,    /* for a queue pair that there never was */
	ENGINE_SIGN_PEER,   /* from an address that is not the peer's */
	ENGINE_SIGN_PSN,    /* far from the PSNs that are under way */
	ENGINE_SIGN_SOURCE, /* of this host, from another user's port */
	ENGINE_SIGN_KEY,    /* with an rkey or a Q_Key that is wrong */
	ENGINE_SIGNS,
};

#define ENGINE_SUSPECTS 32
#define ENGINE_NO_USER	UINT32_MAX

/* The signs from one address; of this host, from one user's ports there. */
struct engine_suspect {
	uint8_t ip[16];
	uint32_t is_local;
	uint32_t user;	 /* ENGINE_NO_USER: of another host, or not known */
	uint64_t weight; /* at least as many as there were; 0: a free row */
	uint64_t signs[ENGINE_SIGNS]; /* since the row is this one's */
	uint64_t dropped; /* of them, without a look at what else they are */
};

#define EVENT_STATUSES 14 /* enum hca_status */

struct engine_counters {
	uint64_t rx_packets, tx_packets;
	uint64_t rx_bytes, tx_bytes; /* of them, from the BTH to the ICRC */
	uint64_t rx_malformed, rx_bad_icrc, rx_unknown_qp, rx_wrong_peer;
	/* of those for unknown QPs: for another process than this */
	uint64_t rx_misdirected;
	uint64_t rx_wrong_psn; /* requests further ahead than a window */
	/* from a port of this host that is not the peer's user's; and dropped
	 * before it was clear, for there were too many such */
	uint64_t rx_wrong_source, rx_limited;
	uint64_t rx_duplicates; /* requests */
	uint64_t rx_out_of_order, rx_buffered;
	uint64_t retransmits, timeouts, rnr_naks_rx, rnr_naks_tx;
	uint64_t rx_dropped; /* messages of UC and UD */
	uint64_t pkey_violations, qkey_violations;
	uint64_t seq_naks_rx, seq_naks_tx, fatal_naks_rx, fatal_naks_tx;
	/* of fatal_naks_tx those of access; gaps in what READs brought */
	uint64_t access_naks_tx, implied_naks;
	uint64_t rx_writes, rx_reads, rx_atomics; /* requests that began */
	uint64_t rx_no_receive;			  /* UC and UD, dropped */
	uint64_t rx_ecn;			  /* "congestion experienced" */
	uint64_t failed;			  /* requests, and by status */
	uint64_t failed_by[EVENT_STATUSES];
};

#endif
