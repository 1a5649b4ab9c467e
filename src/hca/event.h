/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of the protocol code besides packets and completions: events for
 * the front ends, and counters. */
#ifndef HCA_EVENT_H
#define HCA_EVENT_H

#include <stdint.h>

#include "hca/explain.h"
#include "util/inaddr.h"

enum engine_event_type {
	ENGINE_CQ_EVENT,      /* user: the cookie of the CQ */
	ENGINE_CQ_ERR,	      /* user: the cookie of the CQ */
	ENGINE_QP_FATAL,      /* user: the cookie of the QP */
	ENGINE_QP_REQ_ERR,    /* user: the cookie of the QP */
	ENGINE_QP_ACCESS_ERR, /* user: the cookie of the QP */
	ENGINE_COMM_EST,      /* user: the cookie of the QP */
	ENGINE_SQ_DRAINED,    /* user: the cookie of the QP */
	ENGINE_LAST_WQE,      /* user: the cookie of the QP */
	ENGINE_PATH_MIG,      /* user: the cookie of the QP */
	ENGINE_PATH_MIG_ERR,  /* user: the cookie of the QP */
	ENGINE_SRQ_LIMIT,     /* user: the cookie of the SRQ */
	ENGINE_EXPLAIN,	      /* explain: the facts of a failure */
	/* qpn: the QP that asks; peer and dest_qpn: the QP asked about. */
	ENGINE_ASK_PEER,
};

struct engine_event {
	enum engine_event_type type;
	uint64_t user; /* the cookie of the CQ, QP or SRQ */
	/* For events of a QP: qpn is the QP, dest_qpn its peer's QP. */
	uint32_t qpn, dest_qpn;
	/* For events of a QP: the number of its connection (struct qp). */
	uint32_t connection;
	/* For events of a QP: the addresses of the QP and of its peer. */
	struct inaddr self, peer;
	struct explain explain; /* of ENGINE_EXPLAIN */
};

/* The answer to ENGINE_ASK_PEER: is the process of the peer's QP alive? */
enum engine_peer {
	ENGINE_PEER_UNKNOWN, /* no broker can tell */
	ENGINE_PEER_ALIVE,   /* the process is alive */
	ENGINE_PEER_GONE,    /* the process has ended */
	/* The process is alive, and drops all packets to the QP
	 * (engine/closed.h). */
	ENGINE_PEER_CLOSED,
	ENGINE_PEER_LEFT, /* the peer disconnected by rdma_cm */
};

/*
 * Kinds of packets that fit no connection or have a wrong key.  Many of them
 * are a sign that a sender guesses or forges.
 */
enum engine_sign {
	ENGINE_SIGN_NONE,   /* the packet is no sign */
	ENGINE_SIGN_QPN,    /* the QPN never existed */
	ENGINE_SIGN_PEER,   /* the source address is not the peer's */
	ENGINE_SIGN_PSN,    /* the PSN is far from the expected ones */
	ENGINE_SIGN_SOURCE, /* the source is another local user's port */
	ENGINE_SIGN_KEY,    /* the rkey or the Q_Key is wrong */
	ENGINE_SIGNS,
};

#define ENGINE_SUSPECTS 32
#define ENGINE_NO_USER	UINT32_MAX

/* The signs from one address.  An address of this host has a row for each known
 * user whose ports gave signs, and a row for all other signs. */
struct engine_suspect {
	uint8_t ip[16];	   /* the address; IPv4 as ::ffff:a.b.c.d */
	uint32_t is_local; /* an address of this host */
	uint32_t user;	   /* the user; ENGINE_NO_USER: not known */
	/* An upper bound of the number of signs; 0: the row is free. */
	uint64_t weight;
	/* The signs by kind, since the row was given to this address. */
	uint64_t signs[ENGINE_SIGNS];
	uint64_t dropped; /* packets that were dropped by the limit */
};

#define EVENT_STATUSES 14 /* enum hca_status */

/* Packets that were received and dropped before they changed a queue pair. */
struct engine_refused {
	/* malformed: the packet breaks the format of its headers, or is an
	 * answer of the wrong length or with an unknown syndrome.  bad_icrc:
	 * the ICRC is wrong; for a packet by LID, the frame (lrh_frame) or the
	 * ICRC is wrong.  unknown_qp: the QPN does not exist or serves another
	 * transport, or no QP is in the group.  wrong_peer: the packet may not
	 * come to the QP, mostly because it is not from the QP's peer
	 * (refuse_wrong_peer in engine/rx.c); or it came to an address that no
	 * device has. */
	uint64_t malformed, bad_icrc, unknown_qp, wrong_peer;
	/* Packets of unknown_qp that are for another process. */
	uint64_t misdirected;
	/* Packets from a UDP port of this host that belongs to another user
	 * than the peer's. */
	uint64_t wrong_source;
	/* Packets that were dropped before their ICRC was checked.  Their
	 * source address has sent too many packets that fit no connection; or
	 * too many questions about the users of ports were open; or too many
	 * packets waited for the answers to such questions. */
	uint64_t limited;
};

/* NAKs that were received (_rx) and sent (_tx).  The _rx members also count
 * what direct requests have in place of NAKs: refusals (fatal_rx), and waits
 * for a receive (rnr_rx). */
struct engine_naks {
	uint64_t rnr_rx, rnr_tx; /* RNR NAKs */
	/* seq: NAKs for a PSN sequence error.  fatal: NAKs that end the
	 * connection of a requester that waits for the reply, and Terminates of
	 * iWARP. */
	uint64_t seq_rx, seq_tx, fatal_rx, fatal_tx;
	uint64_t access_tx; /* the remote access errors among fatal_tx */
	uint64_t implied;   /* implied NAKs: gaps in the responses of READs */
};

/* The counters of one device in one process.  All words are 64 bits. */
struct engine_counters {
	uint64_t rx_packets, tx_packets; /* packets, or FPDUs of iWARP */
	/* A packet counts with its bytes from the BTH to the pad, an FPDU of
	 * iWARP with its ULPDU. */
	uint64_t rx_bytes, tx_bytes;
	struct engine_refused refused;
	/* Requests whose PSN is more than IBT_HELD_AHEAD (ibt/ibt.h) after the
	 * expected PSN, and packets with a PSN that fits no connection, which
	 * were dropped because their address is limited (engine/suspect.h) or
	 * because they ask for a path migration. */
	uint64_t rx_wrong_psn;
	uint64_t rx_duplicates; /* requests that had come before */
	/* rx_out_of_order: packets after a gap in the PSNs.  rx_buffered: those
	 * of them that were kept until the gap was filled. */
	uint64_t rx_out_of_order, rx_buffered;
	/* retransmits: packets that were sent again.  timeouts: ACK timers that
	 * have expired. */
	uint64_t retransmits, timeouts;
	struct engine_naks naks;
	uint64_t rx_dropped; /* messages of UC and UD that were dropped */
	uint64_t pkey_violations, qkey_violations; /* packets */
	uint64_t rx_writes, rx_reads, rx_atomics;  /* requests that began */
	uint64_t rx_no_receive; /* those of rx_dropped without a receive */
	uint64_t rx_ecn;	/* packets with "congestion experienced" */
	uint64_t failed; /* requests that have failed, without flushed ones */
	/* Requests that have failed or were flushed, by enum hca_status. */
	uint64_t failed_by[EVENT_STATUSES];
};

#endif
