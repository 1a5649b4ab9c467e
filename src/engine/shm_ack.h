/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACKs in shared memory, for an RC connection whose two processes are on one
 * host and send packets.  Besides credits, the page of a process has two words
 * for each of a few queue pairs that are at work (struct credit_post):
 *
 *	responder				requester
 *	writes `accepted` in its own page   ->	reads it, completes requests
 *	reads it, sends no ACK packet       <-	writes `taken` in its own page
 *
 * `accepted` is the PSN before which the responder has accepted all requests.
 * The responder writes `accepted` when it has to send an ACK (IBTA 9.7.5.1).
 * `taken` is the PSN before which the requester has completed all requests.
 * The responder also sends the ACK packet, unless `taken` has exactly the PSN
 * of `accepted`.  So a requester that does not read the page gets ACK packets:
 * its process sleeps, or has not called shm_ack_open with a page, for example
 * because it captures packets.  NAKs and responses are always packets.
 *
 * In a stream of requests `taken` is always a few PSNs behind `accepted`, so
 * the responder would send every ACK packet.  Therefore the ACK packet waits in
 * three cases:
 *
 * - `taken` has not reached the PSN of the last ACK packet: for at most
 *   SHM_ACK_WAIT_NS after that packet was sent.
 * - `taken` is beyond the PSN of the last ACK packet, so the requester reads
 *   the page: for at most SHM_ACK_WAIT_NS after `taken` last advanced.
 * - this QP has sent a request packet to the same peer: for at most
 *   SHM_ACK_REQUEST_NS after that, since the peer reads the page when the
 *   packet comes.
 *
 * In the first two cases the ACK packet does not wait if the requester is fewer
 * than four packets behind, because such a requester may wait for each ACK
 * before it sends again.
 *
 * The bits of a word above the PSN are a hash of both QPNs.  A word with
 * another hash belongs to another connection and is ignored.  So is the word
 * that `accepted` has when a queue pair enters RTR: it belongs to an earlier
 * connection of the same two queue pairs.  If the peer writes the same word
 * once more, the ACK comes as a packet, since `taken` does not follow.  A word
 * that another process wrote is input: like a wrong ACK, a wrong PSN can
 * complete requests too early, but only requests of its own connection.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_SHM_ACK_H
#define ENGINE_SHM_ACK_H

#include "engine/credit.h"
#include "ibt/ibt.h"

#define SHM_ACK_WAIT_NS 50000 /* see the top of this file */
/* See the top of this file.  A process that sleeps wakes up for this timer.
 * With a shorter time the wake-ups would cost more than the ACK packets that
 * the wait saves. */
#define SHM_ACK_REQUEST_NS 5000000

/* The ACKs in shared memory of all QPs of an engine. */
struct shm_ack {
	struct ibt *ibt; /* borrowed */
	/* QPs whose ACK packet waits: struct ibt_qp, linked by `owing`. */
	struct list waiting;
	bool is_forced; /* no ACK packet may wait: a QP is about to end */
	/* This process's own page, borrowed; NULL: all ACKs are packets. */
	struct credit_page *page;
	/* A struct credit, with the page of the peer, for each class of
	 * receivers; borrowed.  NULL: all ACKs are packets. */
	const struct credit *credits;
	uint32_t (*class_of)(uint32_t qpn); /* engine_config.class_of */
	/* The QP that has each struct credit_post of the page; NULL: none. */
	struct ibt_qp *qps[CREDIT_POSTS];
};

/* Initialises *b, which is zero.  t is borrowed.  @credits: one struct credit
 * for each class, borrowed; NULL: all ACKs are packets, and shm_ack_open has no
 * effect.  @class_of: returns the class of a QPN. */
void shm_ack_init(struct shm_ack *b, struct ibt *t,
		  const struct credit *credits,
		  uint32_t (*class_of)(uint32_t qpn));
/* Sets this process's own page, which is borrowed; NULL: all ACKs are
 * packets. */
void shm_ack_open(struct shm_ack *b, struct credit_page *page);
/* Frees q's words if q's state is before RTR.  Notes the word that the peer has
 * left if q's state is RTR.  Called after q was modified. */
void shm_ack_modified(struct shm_ack *b, struct ibt_qp *q);
/* Takes the words for q's QPN, unless another QP that is at work has them, q is
 * not an RC QP with a peer on this host, or this process has no page.  Called
 * when q is at work. */
void shm_ack_want(struct shm_ack *b, struct ibt_qp *q);
/* Clears and frees q's words, if q has words. */
void shm_ack_leave(struct shm_ack *b, struct ibt_qp *q);
/* Called when q is new: clears the words for q's QPN, unless another QP has
 * them.  An earlier QP with this QPN may have left them (shm_ack_removed), and
 * the peer must not take them for words of q. */
void shm_ack_added(struct shm_ack *b, const struct ibt_qp *q);
/* Called before q is removed: frees q's words without clearing them.  If the
 * last ACK packet of q was lost, and q's process ends, the requester still
 * reads in `accepted` that q has accepted its requests. */
void shm_ack_removed(struct shm_ack *b, const struct ibt_qp *q);
/* Takes words for q as shm_ack_want does.  Then writes those that have changed:
 * `accepted` if q has an ACK to send, and `taken` if the peer's page is known.
 * Called after a packet for q was handled. */
void shm_ack_note(struct shm_ack *b, struct ibt_qp *q);
/* Does q have an ACK to send that the peer does not read in this process's
 * page?  Then the caller sends the ACK packet before the next request of q. */
bool shm_ack_precedes(const struct shm_ack *b, const struct ibt_qp *q);
/* Called before the caller sends the ACK packet of q. */
void shm_ack_sends(const struct shm_ack *b, struct ibt_qp *q);
/*
 * True: q sends no ACK packet now, because the peer has taken all requests that
 * q has accepted, or because the ACK packet waits.  False: the caller sends the
 * ACK packet, if q has an ACK to send.  @follows: packets of q to the peer have
 * just been made.
 */
bool shm_ack_keeps_ack(struct shm_ack *b, struct ibt_qp *q, bool follows);
/* Activates the QPs whose ACK packets must not wait any longer. */
void shm_ack_tick(struct shm_ack *b, uint64_t now_ns);
/* Returns when shm_ack_tick is due; UINT64_MAX: never. */
uint64_t shm_ack_deadline(const struct shm_ack *b);
/* @forced true: activates all QPs whose ACK packets wait, and lets no ACK
 * packet wait until a call with false. */
void shm_ack_force(struct shm_ack *b, bool forced);
/* Has a peer accepted requests, by its page, that are not complete here? */
bool shm_ack_has_news(const struct shm_ack *b);
/* Completes the requests that peers have accepted.  The caller calls this after
 * it has received packets and before it gives them to engine_rx.  So a request
 * is complete before the program sees a message that the peer has sent after it
 * accepted the request. */
void shm_ack_look(struct shm_ack *b, uint64_t now_ns);

#endif
