/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: turns posted work into frames and frames into completions.  It
 * owns no socket, thread or clock and never calls back.  Its callers are two:
 * host/progress in real processes and sim/world.  Every call is made under the
 * lane's lock.
 *
 *	in	engine_rx, engine_doorbell, engine_tick, engine_peer_state
 *	out	engine_tx + engine_tx_done, engine_events, engine_deadline
 *
 * A frame is the payload of one UDP datagram (BTH..ICRC), or of several back
 * to back, `segment` bytes each but the last, which may be shorter.  Datagram
 * n of them must leave with IPv4 id n and DF.  Its bytes are the engine's until
 * the next engine_tx_done.  Malformed input is a counter, never an error.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/event.h"
#include "hca/hca.h"
#include "util/inaddr.h"
#include "util/mpsc.h"

struct credit_page;
struct access;

struct engine;
struct ibt_qp; /* the engine's side of a QP; opaque outside ibt and engine */

struct engine_config {
	struct hca *hca;      /* borrowed */
	uint64_t seed;	      /* jitter and source ports */
	uint32_t window;      /* packets in flight to a peer, at most */
	bool strict;	      /* the spec's retry limits, no liveness */
	uint64_t patience_ns; /* how long an alive peer may be silent */
	/* The process of this host that a QPN belongs to; NULL: nobody knows.
	 */
	uint32_t (*class_of)(uint32_t qpn);
	/* Ask of each connection within the host whether it goes directly. */
	bool direct;
	uint32_t piece; /* bytes moved at once there; 0: as usual */
	/* The host tells whose a source port of this host is: source_check.h.
	 */
	bool asks_sources;
};

/* One datagram, or a run of `segment`-byte ones, as a socket gave it. */
struct engine_dgram {
	struct inaddr from, to; /* to.port is 4791 */
	const uint8_t *bytes;	/* borrowed for the call */
	size_t len;
	size_t segment;	 /* == len when it is one datagram */
	uint8_t tos;	 /* not covered by the ICRC; ECN bits are read */
	bool local;	 /* from this host */
	uint32_t device; /* that has `to` */
	/* `to` is the machine's, but no device's and no group's: dropped */
	bool is_stray;
};

struct engine_frame {
	struct inaddr from, to; /* from.port: the source port to use */
	const uint8_t *bytes;
	size_t len;
	size_t segment;
	uint8_t tos, ttl;
	uint32_t dest_qpn;
	uint32_t link; /* as in hca_ah */
};

/* NULL without memory.  free: every QP must have been removed. */
struct engine *engine_new(const struct engine_config *config, uint64_t now_ns);
void engine_free(struct engine *e);
const struct engine_counters *engine_counters(const struct engine *e,
					      uint32_t device);

/*
 * Put a QP under the engine; NULL without memory.  Remove makes the engine
 * forget it: nothing of it is sent, received or completed afterwards.
 */
struct ibt_qp *engine_qp_add(struct engine *e, struct qp *qp);
void engine_qp_remove(struct engine *e, struct ibt_qp *q);
/*
 * Flow control within the host (credit.h): the page that others read of us,
 * its class and the size of the receive buffer; the page of the process that a
 * QPN belongs to, which the engine waits for a little before it sends there
 * (NULL: there is none, do not wait): engine_wants_page tells, once, of which
 * QPN (0: none).  Pages outlive the engine.
 */
void engine_inbox(struct engine *e, struct credit_page *page, uint32_t class,
		  uint32_t buffer_bytes, bool apart);
void engine_page(struct engine *e, uint32_t qpn,
		 const struct credit_page *page);
/* Our socket takes several datagrams at once from here on, for good. */
void engine_joins(struct engine *e);
uint32_t engine_wants_page(struct engine *e);
/*
 * Without packets (direct/initiator.h).  A QP whose first request waits for the
 * host to find its peer's process: engine_wants_path names each once, and again
 * after engine_want_path_again if it still waits; false: no more.
 */
struct engine_want {
	uint32_t qpn, peer_qpn; /* ours, its peer */
	uint64_t since_ns;
};
bool engine_wants_path(struct engine *e, struct engine_want *want);
/* Is there one to name? */
bool engine_is_undecided(const struct engine *e);
void engine_want_path_again(struct engine *e);
/* Does one wait that was named? */
bool engine_waits_for_path(const struct engine *e);
/*
 * The end of the wait: the adapter of the peer's process, our slot there (NULL
 * in this process) and whose it is; no adapter: packets.  True: these are in
 * use until engine_parted hands the owner out, once for each time; NULL: no
 * more are out of use.
 */
bool engine_set_path(struct engine *e, uint32_t qpn, struct hca *target,
		     struct access *access, void *owner);
void *engine_parted(struct engine *e);
/* An owner whose process sleeps and has mail, once; NULL: none. */
void *engine_kick(struct engine *e);
bool engine_has_kicks(const struct engine *e);
/* Peers have left letters: serve them.  engine_tick does. */
void engine_serve_notify(struct engine *e);
bool engine_has_notify(const struct engine *e);
/* Have requests come or gone this way, so that there may be no packets? */
bool engine_is_direct(const struct engine *e);
/* Nobody turns the lane until a kick, or somebody does again. */
void engine_asleep(struct engine *e, bool asleep);
/* Shows our counters in our page (counters.h). */
void engine_publish(struct engine *e);
/* All that was received is served, and there was no more. */
void engine_rx_empty(struct engine *e);
/* Work for q is about to be posted, its first bytes not yet there. */
void engine_qp_expect(const struct ibt_qp *q);
/*
 * Where a datagram of this host says to come from (source_check.h): has the
 * process of the queue pair `qpn`, or one of its user, the port from.port?
 * engine_wants_source names each once; engine_source is the answer, then or
 * later.  engine_forget_sources: a process has ended, and its ports may be
 * another's.
 */
struct engine_source {
	struct inaddr from, to; /* to: the one of ours it came to */
	uint32_t qpn;
	/* In the answer: who has the port, of whatever process; or
	 * ENGINE_NO_USER. */
	uint32_t user;
};
bool engine_wants_source(struct engine *e, struct engine_source *s);
void engine_source(struct engine *e, const struct engine_source *s,
		   bool is_peers, uint64_t now_ns);
void engine_forget_sources(struct engine *e);
/* An address from which so much comes that fits no connection that people
 * should know (suspect.h), once; false: there is none. */
bool engine_suspect(struct engine *e, struct engine_suspect *who);
/* A node for the lane's stack of doorbells, and back. */
struct mpsc_node *engine_qp_kick(struct ibt_qp *q);
struct ibt_qp *engine_qp_of_kick(struct mpsc_node *n);
/* Packets of q that wait for an ACK; without the lock. */
uint32_t engine_qp_flying(const struct ibt_qp *q);
/* Does it send packets that nothing answers?  The same. */
bool engine_qp_is_unanswered(const struct ibt_qp *q);
bool engine_qpn_is_used(const struct engine *e, uint32_t qpn);
/*
 * Modify under IBTA 11.2.5.2.  `from` is the source GID's address (used when
 * mask has HCA_QP_AV).  0, or -EINVAL or -ENOMEM with *why, or -EBUSY: a peer
 * on this host (engine_qp_accessor) has to leave first; then again, and not
 * under a lock meanwhile.
 */
alock_owner engine_qp_accessor(const struct ibt_qp *q);
int engine_qp_modify(struct engine *e, struct ibt_qp *q,
		     const struct hca_qp_attr *attr, uint32_t mask,
		     const uint8_t from[16], uint64_t now_ns, const char **why);
/* As modify left them, with current PSNs and draining. */
void engine_qp_query(const struct engine *e, const struct ibt_qp *q,
		     struct hca_qp_attr *attr);

/* Multicast (UD): 0 or -errno, see ibt/mcast.h. */
int engine_mcast_attach(struct engine *e, struct ibt_qp *q,
			const uint8_t gid[16]);
int engine_mcast_detach(struct engine *e, struct ibt_qp *q,
			const uint8_t gid[16]);
bool engine_mcast_is_used(const struct engine *e, const uint8_t gid[16]);

/* A CQ is about to be freed: no timer of its events stays. */
void engine_cq_remove(struct engine *e, const struct cq *cq);

/*
 * The IPv4 id of one packet of d, which `guess` is given for; for captures: it
 * stays the guess when the packet is damaged or the address is an IPv6 one.
 */
uint16_t engine_dgram_id(const struct engine_dgram *d, const uint8_t *bytes,
			 size_t len, uint16_t guess);
void engine_rx(struct engine *e, const struct engine_dgram *d, uint64_t now_ns);
/*
 * Too much of UC and UD waits for receives: better receive no more before the
 * next doorbell or tick.
 */
bool engine_is_choked(const struct engine *e);
/* Work was posted to q (either queue). */
void engine_doorbell(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
/*
 * The same, and what of it goes without packets and concerns nobody else is
 * done; false: that is nothing, the doorbell is to be rung.  Then is there
 * anything left for the other calls?
 */
bool engine_post_direct(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
bool engine_is_settled(const struct engine *e);
void engine_tick(struct engine *e, uint64_t now_ns);
/* The answer to ENGINE_ASK_PEER. */
void engine_peer_state(struct engine *e, uint32_t qpn, enum engine_peer state,
		       uint64_t now_ns);
/*
 * We, not the peers, were asleep, for slept_ns: that is no silence of theirs,
 * and each running timer is granted its time anew, but not twice: one who is
 * always late would never send again.
 * Before all else on waking; a packet would find our patience used up.
 */
void engine_was_asleep(struct engine *e, uint64_t slept_ns, uint64_t now_ns);

/* The program polls a CQ and has nothing there: whatever it does upon
 * completions it has done. */
void engine_polled(struct engine *e, uint64_t now_ns);

/*
 * Between true and false: what is owed to peers goes now, whatever room they
 * have, for nobody will be there to send it later.
 */
void engine_part(struct engine *e, bool parts);
/*
 * While held, ACKs to peers on this host wait: for the program's next request
 * to the same peer or for the end of the hold, whichever comes first.
 */
void engine_hold_acks(struct engine *e, bool hold);
/* ACKs within the host without packets. */
struct shm_ack *engine_shm_ack(struct engine *e);
bool engine_owes(const struct engine *e); /* ... and are there any? */

/* Frames to send now; those not sent are offered again. */
size_t engine_tx(struct engine *e, struct engine_frame *frames, size_t max,
		 uint64_t now_ns);
void engine_tx_done(struct engine *e, size_t sent);
size_t engine_events(struct engine *e, struct engine_event *events, size_t max);
/* Absolute time of the next tick needed; UINT64_MAX: none. */
uint64_t engine_deadline(const struct engine *e);
/* Is no packet held, no QP active, no timer set?  So with no QP it must be. */
bool engine_is_idle(const struct engine *e);
/* Is there something that engine_tx would send right away? */
bool engine_has_tx(const struct engine *e);

#endif
