/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: turns posted work into frames and frames into completions.  The
 * engine owns no socket, thread or clock and never calls back.  It has two
 * callers: host/progress in real processes, and sim/world.  Every call is made
 * under the progress lock.
 *
 *	in	engine_rx, engine_doorbell, engine_tick, engine_peer_state
 *	out	engine_tx + engine_tx_done, engine_events, engine_deadline
 *
 * A frame is the payload of one UDP datagram (BTH to ICRC), or of several
 * datagrams back to back, of `segment` bytes each but the last, which may be
 * shorter.  Datagram n of a frame must leave with IPv4 id n and DF set.  A
 * frame's bytes belong to the engine and are valid until the next
 * engine_tx_done.  Malformed input is counted and is never an error.
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
struct ibt_qp; /* a QP's protocol state; opaque outside ibt, direct, engine */

struct engine_config {
	struct hca *hca; /* borrowed */
	uint64_t seed;	 /* jitter and source ports */
	uint32_t window; /* packets in flight to a peer, at most */
	bool strict;	 /* the specification's retry limits; no liveness */
	uint64_t patience_ns; /* how long a peer that is alive may be silent */
	/* The steering class of a QPN of this namespace; NULL: unknown. */
	uint32_t (*class_of)(uint32_t qpn);
	/* The host decides for each connection within the host whether it goes
	 * direct. */
	bool direct;
	/* Bytes that one visit moves there; 0: INITIATOR_PIECE. */
	uint32_t piece;
	/* The host answers questions about source ports: source_check.h. */
	bool asks_sources;
};

/* The result of one receive from a socket: one datagram, or a run of datagrams
 * of `segment` bytes each (GRO). */
struct engine_dgram {
	struct inaddr from, to; /* to.port is 4791 */
	const uint8_t *bytes;	/* borrowed for the call */
	size_t len;
	size_t segment;	 /* equals len if it is one datagram */
	uint8_t tos;	 /* not covered by the ICRC; ECN bits are read */
	bool local;	 /* sent by this host */
	uint32_t device; /* the device that has `to` */
	/* `to` is an address of this machine, but of no device and no group:
	 * the datagram is dropped. */
	bool is_stray;
};

struct engine_frame {
	struct inaddr from, to; /* from.port: the source port to use */
	const uint8_t *bytes;
	size_t len;
	size_t segment;
	uint8_t tos, ttl;
	uint32_t dest_qpn;
	uint32_t link; /* as hca_ah.link */
};

/* NULL without memory. */
struct engine *engine_new(const struct engine_config *config, uint64_t now_ns);
/* All QPs must have been removed. */
void engine_free(struct engine *e);
const struct engine_counters *engine_counters(const struct engine *e,
					      uint32_t device);

/*
 * engine_qp_add puts a QP under the engine; NULL without memory.  After
 * engine_qp_remove nothing of the QP is sent, received or completed.
 */
struct ibt_qp *engine_qp_add(struct engine *e, struct qp *qp);
void engine_qp_remove(struct engine *e, struct ibt_qp *q);
/*
 * Flow control within the host (credit.h).  engine_inbox gives the engine this
 * process's own page, its class and the size of its receive buffer.
 * engine_wants_page names, once each, a QPN whose process's page the engine
 * needs (0: none); the engine waits a little for engine_page before it sends to
 * that process.  A page of NULL means that there is none and the engine need
 * not wait.  Pages outlive the engine.
 */
void engine_inbox(struct engine *e, struct credit_page *page, uint32_t class,
		  uint32_t buffer_bytes, bool apart);
void engine_page(struct engine *e, uint32_t qpn,
		 const struct credit_page *page);
/* The receive socket joins datagrams (GRO) from here on. */
void engine_joins(struct engine *e);
uint32_t engine_wants_page(struct engine *e);
/*
 * Requests without packets (direct/initiator.h).  engine_wants_path names, once
 * each, a QP whose first request waits until the host has found the peer's
 * process; after engine_want_path_again it names again those QPs that still
 * wait.  False: there are no more.
 */
struct engine_want {
	uint32_t qpn, peer_qpn;
	uint32_t post_lock; /* of the QP */
	/* When the wait began. */
	uint64_t since_ns;
};
bool engine_wants_path(struct engine *e, struct engine_want *want);
/* Has engine_wants_path a QP to name? */
bool engine_is_undecided(const struct engine *e);
void engine_want_path_again(struct engine *e);
/* Does a QP wait that was named already? */
bool engine_waits_for_path(const struct engine *e);
/*
 * Ends the wait of a QP.  @target: the adapter of the peer's process, @access:
 * this process's access slot there (NULL if it is this process), @owner: the
 * host's struct for that process; no adapter: the QP goes by packets.  @apart:
 * only QPs of the same post lock use the adapter's space and the access slot,
 * so engine_post_apart may use them.  True:
 * they are in use until engine_parted returns the owner, once for each true.
 * engine_parted returns NULL if no more are out of use.
 */
bool engine_set_path(struct engine *e, uint32_t qpn, struct hca *target,
		     struct access *access, void *owner, bool apart);
void *engine_parted(struct engine *e);
/* Returns, once, an owner whose process sleeps and has notify bits set; NULL:
 * none. */
void *engine_kick(struct engine *e);
bool engine_has_kicks(const struct engine *e);
/* Serves the notify bits that peers have set; engine_tick does so too. */
void engine_serve_notify(struct engine *e);
bool engine_has_notify(const struct engine *e);
/* Has a request come or gone without packets? */
bool engine_is_direct(const struct engine *e);
/* @asleep: no thread makes progress until a peer writes the eventfd. */
void engine_asleep(struct engine *e, bool asleep);
/* Writes the counters into this process's page (hca/counters.h). */
void engine_publish(struct engine *e);
/* The receive socket was found empty, and all datagrams are served. */
void engine_rx_empty(struct engine *e);
/* Work for q is about to be posted: prefetches what the post will touch. */
void engine_qp_expect(const struct ibt_qp *q);
/*
 * A question about the source of a datagram of this host (source_check.h): has
 * the process of queue pair `qpn`, or a process of its user, the port
 * from.port?  engine_wants_source names each question once; engine_source is
 * the answer, at once or later.  engine_forget_sources: a process has ended,
 * and another may take its ports.
 */
struct engine_source {
	struct inaddr from, to; /* to: the address that the datagram came to */
	uint32_t qpn;
	/* In the answer: the user whose process has the port, or
	 * ENGINE_NO_USER. */
	uint32_t user;
};
bool engine_wants_source(struct engine *e, struct engine_source *s);
void engine_source(struct engine *e, const struct engine_source *s,
		   bool is_peers, uint64_t now_ns);
void engine_forget_sources(struct engine *e);
/* An address that sends so many packets which fit no connection that a person
 * should be told (suspect.h), once each; false: there is none. */
bool engine_suspect(struct engine *e, struct engine_suspect *who);
/* q's node on the list of doorbells, and the QP of such a node. */
struct mpsc_node *engine_qp_kick(struct ibt_qp *q);
struct ibt_qp *engine_qp_of_kick(struct mpsc_node *n);
/* Packets of q that wait for an ACK.  Without the lock. */
uint32_t engine_qp_flying(const struct ibt_qp *q);
/* Does q send packets that are not acknowledged?  Without the lock. */
bool engine_qp_is_unanswered(const struct ibt_qp *q);
bool engine_qpn_is_used(const struct engine *e, uint32_t qpn);
/*
 * Modifies a QP as IBTA 11.2.5.2 says.  @from: the address of the source GID,
 * used if mask has HCA_QP_AV.  0; -EINVAL or -ENOMEM with *why; -EBUSY: a peer
 * of this host (engine_qp_accessor) works at the QP, and the caller tries again
 * when it has left, without a lock meanwhile.
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

/* A CQ is about to be freed: drops the timer of its events. */
void engine_cq_remove(struct engine *e, const struct cq *cq);

/*
 * For captures: the IPv4 id of one packet of d, computed from the ICRC. Returns
 * @guess if the packet is damaged or goes over IPv6.
 */
uint16_t engine_dgram_id(const struct engine_dgram *d, const uint8_t *bytes,
			 size_t len, uint16_t guess);
/* Receives what a socket gave. */
void engine_rx(struct engine *e, const struct engine_dgram *d, uint64_t now_ns);
/*
 * Do so many packets of UC and UD wait for receives that the caller should
 * receive no more before the next doorbell or tick?
 */
bool engine_is_choked(const struct engine *e);
/* Work was posted to q (either queue). */
void engine_doorbell(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
/*
 * engine_doorbell for work that needs no packet and no other call: executes it.
 * False: nothing was done, and engine_doorbell is due.  True: engine_is_settled
 * says whether the other calls have anything left to do.
 */
bool engine_post_direct(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
bool engine_is_settled(const struct engine *e);
/*
 * Executes work that was posted to q and that needs neither a packet nor a
 * change of anything that q shares with other QPs, but for its completion
 * queue. The caller needs no progress lock: it has q's post lock, one of
 * ENGINE_POST_LOCKS that the engine's caller makes.  The caller of any other
 * function that uses QPs has all of them.  *kick: the owner (engine_set_path)
 * of the process that sleeps and has to be woken, or NULL.  False: work or
 * events are left, and engine_doorbell is due.
 */
bool engine_post_apart(struct engine *e, struct ibt_qp *q, uint64_t now_ns,
		       void **kick);
/* Would work that was posted to q take one system call together with work that
 * is posted after it?  Lock: as engine_post_apart. */
bool engine_qp_gathers(struct engine *e, const struct ibt_qp *q);
/* May engine_post_apart execute work of q?  A hint; without a lock. */
bool engine_qp_posts_apart(const struct ibt_qp *q);
/* The number of q's post lock, below ENGINE_POST_LOCKS; it never changes. */
#define ENGINE_POST_LOCKS 16
uint32_t engine_qp_post_lock(const struct ibt_qp *q);
/* The same of all QPs that complete requests into send_cq: threads with a
 * completion queue each have a lock each. */
uint32_t engine_post_lock_of(const struct cq *send_cq);
void engine_tick(struct engine *e, uint64_t now_ns);
/* The answer to ENGINE_ASK_PEER. */
void engine_peer_state(struct engine *e, uint32_t qpn, enum engine_peer state,
		       uint64_t now_ns);
/*
 * This process did not run for slept_ns: the peers were not silent, so each
 * running timer gets its full time again, but only once, since a process that
 * is always late would never send again.  Called before all else after the
 * sleep: a packet received before would find the patience used up.
 */
void engine_was_asleep(struct engine *e, uint64_t slept_ns, uint64_t now_ns);

/* The program polls a CQ that is empty: it has done what it does upon the
 * completions before. */
void engine_polled(struct engine *e, uint64_t now_ns);

/*
 * Between true and false ACKs and answers are sent whatever room the peers
 * have, since the QP or the process is about to go.
 */
void engine_part(struct engine *e, bool parts);
/*
 * While held, ACKs to peers of this host wait for the program's next request to
 * the same peer, or for the end of the hold.
 */
void engine_hold_acks(struct engine *e, bool hold);
/* ACKs within the host through shared memory. */
struct shm_ack *engine_shm_ack(struct engine *e);
/* Is an ACK held? */
bool engine_owes(const struct engine *e);

/* Frames to send now; the next call offers those again that were not sent. */
size_t engine_tx(struct engine *e, struct engine_frame *frames, size_t max,
		 uint64_t now_ns);
void engine_tx_done(struct engine *e, size_t sent);
size_t engine_events(struct engine *e, struct engine_event *events, size_t max);
/* Absolute time of the next tick needed; UINT64_MAX: none. */
uint64_t engine_deadline(const struct engine *e);
/* Is no packet held, no QP active and no timer set?  So it must be without QPs.
 */
bool engine_is_idle(const struct engine *e);
/* Would engine_tx return a frame or execute a request? */
bool engine_has_tx(const struct engine *e);

#endif
