/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine: turns posted work into frames and frames into completions.  The
 * engine owns no socket, thread or clock, and its only callback is class_of.
 * The callers are src/host in real processes, and sim.  Every call is made
 * under the progress lock and, if it uses QPs, under all post locks, unless the
 * function's comment names another lock or says that none is needed.
 *
 *	in	engine_rx, engine_doorbell, engine_tick, engine_peer_state
 *	out	engine_tx + engine_tx_done, engine_events, engine_deadline
 *
 * A frame is the payload of one UDP datagram (BTH to ICRC), or the payloads of
 * several datagrams back to back.  Each of these has `segment` bytes; only the
 * last may be shorter.  Datagram n of a frame must be sent with IPv4 id n and
 * DF set.  A frame's bytes belong to the engine and are valid until the next
 * engine_tx_done.  Malformed input is counted and is never an error.
 *
 * A QP whose qp->is_by_lid is set sends and receives packets of an InfiniBand
 * link in place of datagrams: its frames have a head, and engine_rx_link takes
 * its packets.
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
struct iblink;

struct engine;
struct ibt_qp; /* a QP's protocol state; opaque outside ibt, direct, engine */

struct stream_config;

/* Mechanisms that this engine does not use, so that a measurement shows their
 * gain.  The engine's peers may still use them. */
struct engine_without {
	bool credits; /* flow control within the host (credit.h) */
	bool acks;    /* ACKs in shared memory (shm_ack.h) */
	bool eager;   /* sending eager messages (hca/eager.h) */
};

/* The arguments of engine_new, which copies them. */
struct engine_config {
	struct hca *hca; /* borrowed */
	/* The most unacknowledged packets of a QP; a number below
	 * IBT_WINDOW_START counts as IBT_WINDOW_START. */
	uint32_t window;
	/* The engine does no more than the specification says: retries end even
	 * if the peer's process lives, and packets of UC and UD do not wait for
	 * receives. */
	bool strict;
	uint64_t patience_ns; /* how long a peer that is alive may be silent */
	/* Returns the steering class of a QPN of this namespace; NULL: there
	 * are no classes. */
	uint32_t (*class_of)(uint32_t qpn);
	/* The caller decides for each connection to a peer of this host whether
	 * its path is direct (engine_wants_path); false: all requests go by
	 * packets. */
	bool direct;
	/* The most bytes of a direct request that are copied in one hold of the
	 * responder lock; 0: INITIATOR_PIECE. */
	uint32_t piece;
	/* The engine's caller answers questions about source ports
	 * (source_check.h); false: all ports are believed. */
	bool asks_sources;
	struct engine_without without;
};

/* The result of one receive from a socket: one datagram, or a run of datagrams
 * of `segment` bytes each, of which the last may be shorter (GRO). */
struct engine_dgram {
	struct inaddr from, to; /* to.port is 4791 */
	const uint8_t *bytes;	/* borrowed for the call */
	size_t len;
	size_t segment;	 /* bytes of each datagram; len: there is only one */
	uint8_t tos;	 /* the ToS or the traffic class */
	bool local;	 /* sent by this host */
	uint32_t device; /* the index of the device that has `to` */
	/* No device has the address `to`, and `to` is no group: the datagram is
	 * dropped. */
	bool is_stray;
	/* Set by engine_rx_link alone: the headers of a packet of an InfiniBand
	 * link. */
	const struct iblink *link;
	uint32_t port; /* the number of the port, if `link` is set */
};

/* A packet that was received from an InfiniBand link. */
struct engine_packet {
	const uint8_t *bytes; /* from LRH to VCRC; borrowed for the call */
	size_t len;
	uint32_t device; /* the index of the device whose port received it */
	uint32_t port;	 /* the number of that port, from 1 */
};

/* A frame to be sent: one UDP payload, or several (see the top of this
 * file). */
struct engine_frame {
	struct inaddr from, to; /* from.port: the source port to use */
	const uint8_t *bytes;	/* the engine's, until engine_tx_done */
	size_t len;
	size_t segment; /* bytes of each datagram but the last */
	/* The ToS or traffic class (tos), and the TTL or hop limit (ttl). */
	uint8_t tos, ttl;
	uint32_t dest_qpn; /* of all packets of the frame */
	uint32_t link;	   /* the interface of `from` (hca_ah.link) */
	/* LRH and GRH of a packet of an InfiniBand link, which the caller sends
	 * before `bytes`.  Such a frame has one packet, and its bytes end with
	 * the VCRC.  The engine's, until engine_tx_done. */
	const uint8_t *head;
	size_t head_bytes;     /* 0: the frame is for UDP */
	uint32_t device, port; /* by which a frame with a head leaves */
};

/* Returns a new engine, which the caller frees by engine_free; NULL: no memory.
 */
struct engine *engine_new(const struct engine_config *config, uint64_t now_ns);
/* Frees the engine, from which the caller has removed all QPs. */
void engine_free(struct engine *e);
/* Returns a device's counters, which lie in the arena. */
const struct engine_counters *engine_counters(const struct engine *e,
					      uint32_t device);

/* Lets the engine serve qp, which is borrowed until engine_qp_remove.  Returns
 * its protocol state, which the engine owns; NULL: no memory. */
struct ibt_qp *engine_qp_add(struct engine *e, struct qp *qp);
/* Frees q.  No packet of the QP is made or received any more, and no request is
 * completed.  Frames that were made before are still sent.  Events that have
 * the QP's cookie and were not taken are dropped. */
void engine_qp_remove(struct engine *e, struct ibt_qp *q);
/*
 * Begins flow control within the host (credit.h).  @page: this process's own
 * page, which outlives the engine; NULL: this process has none.  @class: the
 * class of this process.  @buffer_bytes: the size of the receive buffer of this
 * process's socket.  @apart: the socket does not join datagrams (GRO).
 */
void engine_inbox(struct engine *e, struct credit_page *page, uint32_t class,
		  uint32_t buffer_bytes, bool apart);
/* Returns the page that the engine has of the process that has qpn; NULL:
 * none. */
const struct credit_page *engine_page_of(const struct engine *e, uint32_t qpn);
/* Answers engine_wants_page.  @page: the page of the process that has qpn, in
 * place of the one that the engine has; the page outlives the engine, or its
 * replacement.  NULL: the process has no page, and the engine does not wait for
 * one any more. */
void engine_page(struct engine *e, uint32_t qpn,
		 const struct credit_page *page);
/* Tells the engine that the receive socket joins datagrams (GRO) from now
 * on. */
void engine_joins(struct engine *e);
/* Returns, once, a QPN of a process whose page the engine needs, or whose class
 * may have another page than the one that the engine has; 0: there is none.
 * Without a page, until the call of engine_page, but at most for a limited
 * time, the engine sends that process only 16 KiB (credit.h). */
uint32_t engine_wants_page(struct engine *e);
/* A QP that may go direct (direct/initiator.h).  Its next request waits until
 * the caller has called engine_set_path. */
struct engine_want {
	uint32_t qpn; /* of the QP that waits */
	/* The QP of the peer; for UD the destination of the next datagram. */
	uint32_t peer_qpn;
	uint32_t post_lock; /* the number of the QP's post lock */
	uint64_t since_ns;  /* when the wait began */
	/* By LID: the QP's attributes, valid until the next call of the engine.
	 * NULL: the QP is not by LID. */
	const struct hca_qp_attr *by_lid;
};
/* Returns a waiting QP in *want.  Returns each waiting QP only once, until
 * engine_want_path_again is called.  False: there is none. */
bool engine_wants_path(struct engine *e, struct engine_want *want);
/* Would engine_wants_path return a QP? */
bool engine_is_undecided(const struct engine *e);
/* Makes engine_wants_path return again the QPs that still wait. */
void engine_want_path_again(struct engine *e);
/* Does a QP wait that engine_wants_path has returned? */
bool engine_waits_for_path(const struct engine *e);
/*
 * Decides the path of a QP, and so ends the QP's wait.  @target: the view of
 * the adapter of the peer's process; NULL: requests to that process go by
 * packets.  @access: this process's access slot there; NULL if the peer's
 * process is this process.  @owner: the caller's struct for the peer's process.
 * @apart: only QPs of one post lock use target's space and the access slot, so
 * engine_post_apart may execute requests of this QP.  True: requests go direct,
 * and the engine uses target, access and owner until engine_released has
 * returned the owner.  engine_released returns an owner once for each call that
 * has returned true.  False: this call gives the engine none of the three,
 * because target is NULL, there is no memory, no such QP waits, or the QP's
 * path was decided before (engine_subnet).
 */
bool engine_set_path(struct engine *e, uint32_t qpn, struct hca *target,
		     struct access *access, void *owner, bool apart);
/*
 * Lets RC QPs by LID go direct, too, unless they have an alternate path.
 * @changes: a number that changes before or when the subnet changes in a way
 * that may make an answer of engine_set_way wrong.  The number outlives the
 * engine's QPs.  When the number changes, engine_wants_path returns each direct
 * QP by LID again before its next message.  Then engine_set_path with the same
 * target lets the QP go on, and engine_set_path with another target or none
 * makes the QP send packets from then on.
 */
void engine_subnet(struct engine *e, const shared_u32 *changes);
/* Notes the subnet's answer about the QP by LID with this QPN; does nothing if
 * there is no such QP.  Called before engine_set_path with a target. */
void engine_set_way(struct engine *e, uint32_t qpn, const struct hca_way *way);
/* Returns an owner that the engine has stopped using; NULL: there is none. */
void *engine_released(struct engine *e);
/* Returns, once, an owner whose process sleeps and has notify bits set; NULL:
 * there is none. */
void *engine_wants_wake(struct engine *e);
/* Would engine_wants_wake return an owner? */
bool engine_has_wakes(const struct engine *e);
/* Serves the notify bits that peers have set.  engine_tick, engine_tx,
 * engine_qp_check and engine_qp_modify do so, too. */
void engine_serve_notify(struct engine *e);
/* Have peers set notify bits that are not served?  Needs no lock. */
bool engine_has_notify(const struct engine *e);
/* Has a QP of this process or of a peer gone direct? */
bool engine_is_direct(const struct engine *e);
/* Tells the peers whether this process is asleep.  While it is asleep, a peer
 * that sets a notify bit also writes the eventfd.  After a call with true the
 * caller calls engine_has_notify, and sleeps only if that returns false.  Needs
 * no lock. */
void engine_asleep(struct engine *e, bool asleep);
/* Writes the counters into this process's page (hca/counters.h), if this
 * process has a page. */
void engine_publish(struct engine *e);
/* Tells the engine that the receive socket was found empty, and that all
 * datagrams are served. */
void engine_rx_empty(struct engine *e);
/* Called before the caller sleeps.  True: the caller looks at the socket once
 * more after ENGINE_LOOK_AGAIN_NS, and then calls engine_rx_empty (the reason
 * is at credit_owes_look). */
bool engine_owes_look(const struct engine *e);
#define ENGINE_LOOK_AGAIN_NS 20000000u
/* Called before work is posted to q: prefetches the memory that a post uses.
 * Needs no lock. */
void engine_qp_expect(const struct ibt_qp *q);
/* A question about the source of a datagram from this host (source_check.h):
 * does the port from.port belong to the user of the process that has the QP
 * `qpn`? */
struct engine_source {
	struct inaddr from, to; /* to: the address that the datagram came to */
	uint32_t qpn;
	/* In the answer: the user whose process has the port, or
	 * ENGINE_NO_USER. */
	uint32_t user;
};
/* Returns the next question in *s, once; false: there is none. */
bool engine_wants_source(struct engine *e, struct engine_source *s);
/* Answers a question, at once or later, and handles the packets that wait for
 * the answer.  @is_peers: the answer is yes. */
void engine_source(struct engine *e, const struct engine_source *s,
		   bool is_peers, uint64_t now_ns);
/* Forgets all answers.  Called when a process has ended, because another
 * process may get its ports. */
void engine_forget_sources(struct engine *e);
/* Stores in *who, once, an address that has sent many packets which fit no
 * connection (suspect.h), for a message to the user.  False: there is none. */
bool engine_suspect(struct engine *e, struct engine_suspect *who);
/* Returns q's node on the list of doorbells.  Needs no lock. */
struct mpsc_node *engine_qp_doorbell(struct ibt_qp *q);
/* Returns the QP of a node of the list of doorbells. */
struct ibt_qp *engine_qp_of_doorbell(struct mpsc_node *n);
/* Returns how many packets of q are not acknowledged yet.  Needs no lock. */
uint32_t engine_qp_flying(const struct ibt_qp *q);
/* Does no packet acknowledge the requests of q, because q is of UC or UD, or
 * sends by a stream?  Needs no lock. */
bool engine_qp_is_unanswered(const struct ibt_qp *q);
/* Returns the QP with this QPN, or NULL. */
struct ibt_qp *engine_qp_find(const struct engine *e, uint32_t qpn);
/* Do completions of the QP with this QPN wait to be polled?  False if there is
 * no such QP, or if the QP is in ERR: then the completions may be mere flush
 * errors. */
bool engine_qp_has_comps(const struct engine *e, uint32_t qpn);
/* Returns q's QPN.  Needs no lock. */
uint32_t engine_qp_qpn(const struct ibt_qp *q);
/* Is q a QP of an iWARP device, whose requests go only over an iWARP connection
 * (engine_stream_open)?  Needs no lock. */
bool engine_qp_is_iwarp(const struct ibt_qp *q);
/* Returns the holder of q's responder lock; 0: the lock is free.  Needs no
 * lock. */
alock_owner engine_qp_accessor(const struct ibt_qp *q);
/* Would engine_qp_modify accept this call, apart from -EBUSY?  Returns 0, or
 * the error and *why of engine_qp_modify.  Changes no attribute, but serves
 * notify bits and makes room for responses (ibt_qp_room). */
int engine_qp_check(struct engine *e, struct ibt_qp *q,
		    const struct hca_qp_attr *attr, uint32_t mask,
		    uint64_t now_ns, const char **why);
/*
 * Modifies a QP as IBTA 11.2.5.2 says.  @from: the address of the source GID,
 * used if mask has HCA_QP_AV and the QP is not by LID.  Returns 0; -EINVAL or
 * -ENOMEM with *why, which is static; -EBUSY: a peer of this host
 * (engine_qp_accessor) works at the QP, and the caller releases its locks and
 * tries again when the peer has left the QP.
 */
int engine_qp_modify(struct engine *e, struct ibt_qp *q,
		     const struct hca_qp_attr *attr, uint32_t mask,
		     const uint8_t from[16], uint64_t now_ns, const char **why);
/* Returns in *attr the attributes that engine_qp_modify has set, and the
 * current state, PSNs and draining. */
void engine_qp_query(const struct engine *e, const struct ibt_qp *q,
		     struct hca_qp_attr *attr);

/* Attaches a UD QP to a multicast group.  Returns 0, also if q is attached
 * already; -ENOMEM; -ENOSPC: there are too many members or attachments
 * (ibt/mcast.h). */
int engine_mcast_attach(struct engine *e, struct ibt_qp *q,
			const uint8_t gid[16]);
/* Attaches a UD QP to the group gid, the alias of the group `named`, to which
 * engine_mcast_attach has attached the QP.  Returns 0, also if q is attached to
 * gid already; -ENOMEM; -ENOSPC: there are too many members or attachments. */
int engine_mcast_attach_alias(struct engine *e, struct ibt_qp *q,
			      const uint8_t named[16], const uint8_t gid[16]);
/* Detaches a UD QP from a multicast group, and from the alias that was attached
 * for the group.  Returns 0, or -EINVAL: engine_mcast_attach has not attached q
 * to the group. */
int engine_mcast_detach(struct engine *e, struct ibt_qp *q,
			const uint8_t gid[16]);
/* Is any QP of the engine attached to the group? */
bool engine_mcast_is_used(const struct engine *e, const uint8_t gid[16]);

/* Cancels the timer by which events of a CQ are moderated.  Called before the
 * CQ is freed. */
void engine_cq_remove(struct engine *e, const struct cq *cq);

/* For captures: returns the IPv4 id with which the packet bytes[0..len) of d
 * was sent, computed from its ICRC; `guess` if the packet is damaged or goes
 * over IPv6. */
uint16_t engine_dgram_id(const struct engine_dgram *d, const uint8_t *bytes,
			 size_t len, uint16_t guess);
/* Handles a datagram, or a run of datagrams, that was received from a socket.
 */
void engine_rx(struct engine *e, const struct engine_dgram *d, uint64_t now_ns);
/*
 * Should the caller receive no more datagrams before the next doorbell or tick,
 * because too many packets of UC and UD wait for receives?
 */
bool engine_is_choked(const struct engine *e);
/* Handles a packet of an InfiniBand link, for a QP by LID or for a multicast
 * group.  Checks its frame and both of its CRCs.  Returns whether the packet is
 * a datagram (UD) that this call has dropped because of its Q_Key; a multicast
 * packet: that it has dropped for at least one QP. */
bool engine_rx_link(struct engine *e, const struct engine_packet *packet,
		    uint64_t now_ns);
/* Sets the values that the subnet manager has given to port `number`, 1 to
 * HCA_MAX_PORTS.  Packets by LID that are made from now on have the LID as
 * their SLID, with the path bits of their address handle (IBTA Vol 1, 4.1.3),
 * and the P_Key at their QP's pkey_index.  Packets that come to a connection
 * must have the present LID of its port as their DLID. */
void engine_port(struct engine *e, uint32_t device, uint32_t number,
		 const struct hca_port *port);
/* Moves all QPs by LID of a device to ERR, because its ports have no link any
 * more and will get none. */
void engine_fail_device(struct engine *e, uint32_t device, uint64_t now_ns);
/* Called when work was posted to q's send or receive queue. */
void engine_doorbell(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
/*
 * Executes the posted work of a QP that goes direct, at once and in place of
 * engine_doorbell and engine_tx.  False: nothing was done, and the caller calls
 * engine_doorbell.  True: engine_is_settled tells whether other calls are due.
 */
bool engine_post_direct(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
/* Is there no frame to send, no active QP, no process to wake, no notify bit,
 * no event, no QP for engine_wants_path and no page for engine_wants_page? */
bool engine_is_settled(const struct engine *e);
/*
 * Executes work that was posted to q, if it needs no packet and changes nothing
 * that q shares with other QPs except its completion queue.
 *
 * Lock: q's post lock, one of ENGINE_POST_LOCKS locks that the engine's caller
 * owns; the progress lock is not needed.  The caller of any other function that
 * uses QPs holds the progress lock and all post locks.
 *
 * *to_wake: the owner (engine_set_path) of a process that sleeps and that the
 * caller wakes, or NULL.  False: work or events are left, and the caller calls
 * engine_doorbell.  True also if q waits for a receive of the peer: the engine
 * executes the work at the end of the wait.
 */
bool engine_post_apart(struct engine *e, struct ibt_qp *q, uint64_t now_ns,
		       void **to_wake);
/* May engine_resume_apart find work for post lock `number`?  A hint, which
 * needs no lock. */
bool engine_awaits_receive(const struct engine *e, uint32_t number);
/*
 * Looks at one QP with post lock `number` that waits for a receive of its peer;
 * each call looks at the next one.  If the peer has a receive, ends the wait
 * and executes the QP's work.  False: no QP with this lock waits, or no request
 * was executed and the QP waits as before or again.  Lock and to_wake: as for
 * engine_post_apart.  *left: NULL, or the QP if its work or events are left;
 * the caller then calls engine_doorbell.
 */
bool engine_resume_apart(struct engine *e, uint32_t number, uint64_t now_ns,
			 struct ibt_qp **left, void **to_wake);
/* Would the posted work of q and work that is posted later take one system call
 * together, rather than one each?  The caller holds q's post lock. */
bool engine_qp_gathers(struct engine *e, const struct ibt_qp *q);
/* May engine_post_apart execute work of q?  A hint, which needs no lock. */
bool engine_qp_posts_apart(const struct ibt_qp *q);
/* Returns the number of q's post lock, below ENGINE_POST_LOCKS.  q keeps this
 * number.  Needs no lock. */
#define ENGINE_POST_LOCKS 16
uint32_t engine_qp_post_lock(const struct ibt_qp *q);
/* Returns the number of the post lock of all QPs that complete requests into
 * send_cq.  So threads that each use their own completion queue mostly use
 * different locks.  Needs no lock. */
uint32_t engine_post_lock_of(const struct cq *send_cq);
/* Does the work that is due by now: handles expired timers and notify bits, and
 * looks whether QPs that wait for a peer can go on.  Called at engine_deadline,
 * or more often. */
void engine_tick(struct engine *e, uint64_t now_ns);
/* Answers ENGINE_ASK_PEER.  qpn: the QP that has asked; connection: that of the
 * event.  An answer about an earlier connection of the QP is ignored. */
void engine_peer_state(struct engine *e, uint32_t qpn, uint32_t connection,
		       enum engine_peer state, uint64_t now_ns);
/*
 * Tells the engine that this process did not run for slept_ns, and so could not
 * receive.  Each running ACK timer gets its full time again, but only once:
 * otherwise a process that is always late would never send again.  The caller
 * calls this before it receives, since a packet that is received first would be
 * judged by timers that have expired.
 */
void engine_was_asleep(struct engine *e, uint64_t slept_ns, uint64_t now_ns);

/* Called when a poll of the program makes a turn of progress.  By then the
 * program has handled the completions of its earlier polls, and has posted the
 * work that depends on them. */
void engine_polled(struct engine *e, uint64_t now_ns);

/* From a call with true to a call with false, ACKs and responses are sent at
 * once, even without credit.  Used when a QP or the process is about to end. */
void engine_force_responses(struct engine *e, bool forced);
/*
 * While `hold` is set, ACKs to peers of this host wait for the program's next
 * request to the same peer.  A call with false sends the ACKs that still wait.
 * engine_tick makes such a call itself when an ACK has waited for IBT_OWE_NS
 * (ibt/ibt.h).
 */
void engine_hold_acks(struct engine *e, bool hold);
/* Returns the engine's struct shm_ack (shm_ack.h), which the engine owns. */
struct shm_ack *engine_shm_ack(struct engine *e);
/* Does an ACK wait because of engine_hold_acks? */
bool engine_owes(const struct engine *e);

/* Executes direct requests and makes frames.  Stores up to max frames in
 * `frames`, and returns their number.  Frames that are not sent are returned
 * again by the next call. */
size_t engine_tx(struct engine *e, struct engine_frame *frames, size_t max,
		 uint64_t now_ns);
/* Tells the engine that frame i of the last engine_tx is lost, because the
 * kernel has refused to send it: engine_tx_done will not count its packets as
 * sent. */
void engine_tx_refused(struct engine *e, size_t i);
/* Tells the engine that the first `sent` frames of the last engine_tx were
 * sent, or lost. */
void engine_tx_done(struct engine *e, size_t sent);
/* Moves up to max events to `events`, and returns their number. */
size_t engine_events(struct engine *e, struct engine_event *events, size_t max);
/* Returns when engine_tick is due next, in ns of the caller's clock;
 * UINT64_MAX: never. */
uint64_t engine_deadline(const struct engine *e);
/*
 * Byte streams: once engine_stream_open was called for an RC QP, the QP sends
 * and receives bytes over an iWARP connection, which the caller owns, and uses
 * no frames.
 *
 *	while ((q = engine_stream_next(e)))
 *		send the bytes that engine_stream_tx(e, q, ...) writes
 */
/* Notes the address of the peer of q's connection, for messages to the user and
 * for `adverb top`. */
void engine_stream_peer(struct ibt_qp *q, const uint8_t ip[16]);
/* Begins full operation of q's connection (iwarp/stream.h), with a copy of *c.
 * Returns 0; -ENOMEM; -EINVAL: a member of *c is out of range. */
int engine_stream_open(struct engine *e, struct ibt_qp *q,
		       const struct stream_config *c);
/* Returns a QP that may have bytes to send; NULL: there is none.  Returns a QP
 * again only if it may have more bytes.  engine_tx finds these QPs, so the
 * caller calls engine_tx first. */
struct ibt_qp *engine_stream_next(struct engine *e);
/* Would engine_stream_next return a QP? */
bool engine_stream_has_next(const struct engine *e);
/*
 * Writes whole FPDUs of q to buf, which has `room` bytes, at least
 * engine_stream_room.  Returns the number of bytes written, all of which the
 * caller sends before it calls again.  If FPDUs are left because of too little
 * room, engine_stream_next returns q again after the next engine_tx.  If q's
 * connection is an association of SCTP, writes one message; engine_stream_next
 * then returns q until no message is left.
 */
uint32_t engine_stream_tx(struct engine *e, struct ibt_qp *q, uint8_t *buf,
			  uint32_t room, uint64_t now_ns);
/* Returns how many bytes of room engine_stream_tx needs for one FPDU of q. */
uint32_t engine_stream_room(const struct ibt_qp *q);
/* Notes, for `adverb top`, that q's connection took only a part of the bytes of
 * the last engine_stream_tx. */
void engine_stream_blocked(struct ibt_qp *q);
/* Makes engine_stream_next return q again, after the next engine_tx.  Called
 * when q's connection takes bytes again. */
void engine_stream_ready(struct engine *e, struct ibt_qp *q);
/* Is q's connection an association of SCTP? */
bool engine_stream_is_session(const struct ibt_qp *q);
/* Writes to buf, which has ENGINE_FINISH_BYTES bytes, the message by which this
 * side ends the session of an association of SCTP without an error.  The caller
 * sends the message after all bytes of engine_stream_tx.  Returns the
 * length of the message; 0: an earlier call has written it, or q's connection
 * is no association. */
#define ENGINE_FINISH_BYTES 8
uint32_t engine_stream_finish(struct ibt_qp *q, uint8_t *buf);
/* Has the peer ended the session of its association without an error?  The
 * caller closes the connection as at the end of a byte stream. */
bool engine_stream_has_peer_ended(const struct ibt_qp *q);
/* Handles n bytes that q's connection has received or, if the connection is an
 * association, one message of n bytes. */
void engine_stream_rx(struct engine *e, struct ibt_qp *q, const uint8_t *p,
		      uint32_t n, uint64_t now_ns);
/* Called when q's connection has ended.  Fails q, unless q has failed
 * already. */
void engine_stream_lost(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
/* Called when the program has ended q's connection.  Fails q, unless q has
 * failed already, without a message to the user. */
void engine_stream_end(struct engine *e, struct ibt_qp *q, uint64_t now_ns);
/* May q send?  It may if stream_config.is_responder is false, if a valid first
 * FPDU of the peer has come, or after engine_stream_begin.  The caller limits
 * the time of the wait. */
bool engine_stream_has_begun(const struct ibt_qp *q);
/* Lets q send, although the peer's first FPDU has not come (stream_begin).
 * Called when the caller has waited for that FPDU long enough. */
void engine_stream_begin(struct engine *e, struct ibt_qp *q);
/* Sends a WRITE without bytes (stream_nudge).  Called when the peer has sent
 * nothing for a while. */
void engine_stream_nudge(struct engine *e, struct ibt_qp *q);
/* Has engine_stream_tx written all requests that are posted, and all responses
 * and Terminates that are due?  Then the caller may send FIN.  Responses to q's
 * own requests may not have come yet. */
bool engine_stream_is_drained(const struct ibt_qp *q);
/* Does q execute no request any more?  If the connection takes no bytes, the
 * caller closes the connection after a while. */
bool engine_stream_has_failed(const struct ibt_qp *q);
/* Are all bytes sent, and are received bytes ignored from now on?  Then the
 * caller closes the connection. */
bool engine_stream_is_over(const struct ibt_qp *q);

/* Returns the number of QPs. */
uint32_t engine_qp_count(const struct engine *e);
/* Is no packet held, no QP active and no timer set?  An engine without QPs must
 * be idle. */
bool engine_is_idle(const struct engine *e);
/* Is there a frame to send or an active QP?  If not, engine_tx returns no frame
 * and executes no request. */
bool engine_has_tx(const struct engine *e);

#endif
