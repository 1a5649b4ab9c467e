/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACKs in shared memory, for an RC connection between two processes of one host
 * that send packets.  The page of a process has, beside its credits, two words
 * for each of a few queue pairs that are at work (struct credit_post):
 *
 *	the responder writes its page		the requester writes its page
 *	accepted: all before this PSN	->	reads it, completes requests
 *	reads it, drops the ACK packet	<-	taken: all before this PSN
 *
 * The responder writes `accepted` when it has to send an ACK (IBTA 9.7.5.1).
 * The responder sends the ACK packet too, unless `taken` has exactly that PSN.
 * So nothing depends on a requester that reads: a requester that sleeps,
 * captures or has no page gets packets.  NAKs and responses are always packets.
 *
 * In a stream of requests `taken` is always a few PSNs behind `accepted`, so
 * the responder would send every ACK packet.  Therefore the ACK packet waits:
 *
 * - for at most SHM_ACK_WAIT_NS after the last ACK packet was sent, while
 *   `taken` has not reached the PSN of that packet; and for at most
 *   SHM_ACK_WAIT_NS after `taken` last advanced, while it is beyond that PSN,
 *   since the requester then reads the page.  The ACK packet does not wait for
 *   a requester that is fewer than four packets behind: it may wait for each
 *   answer.
 * - for at most SHM_ACK_REQUEST_NS after this QP has sent the same peer a
 *   request packet: the peer reads the page when that packet comes.
 *
 * A word has a hash of both QPNs above the PSN; a word with another hash
 * belongs to another connection and is ignored.  A word that another process
 * wrote is input: a wrong PSN completes requests of that connection too early,
 * as a wrong ACK would, and no others.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_SHM_ACK_H
#define ENGINE_SHM_ACK_H

#include "engine/credit.h"
#include "ibt/ibt.h"

#define SHM_ACK_WAIT_NS 50000
/* A process that sleeps wakes for this timer; woken more often, it would spend
 * more time than an ACK packet takes. */
#define SHM_ACK_REQUEST_NS 5000000

struct shm_ack {
	struct ibt *ibt;
	struct list
		trusting; /* struct ibt_qp whose ACK packet waits, by owing */
	bool is_shut;	  /* no ACK packet waits: a QP is about to end */
	struct credit_page *page; /* this process's own; NULL: packets alone */
	const struct credit *credits;
	uint32_t (*class_of)(uint32_t qpn);
	/* The QP that has each struct credit_post of the page; NULL: none. */
	struct ibt_qp *qps[CREDIT_POSTS];
};

/* Initializes *b, which is zero.  t and credits (NULL: packets alone, whatever
 * shm_ack_open says) are borrowed. */
void shm_ack_init(struct shm_ack *b, struct ibt *t,
		  const struct credit *credits,
		  uint32_t (*class_of)(uint32_t qpn));
/* Sets this process's own page, which is borrowed; NULL: packets alone. */
void shm_ack_open(struct shm_ack *b, struct credit_page *page);
/* q was modified: frees q's words if its state is before RTR. */
void shm_ack_modified(struct shm_ack *b, struct ibt_qp *q);
/* q is at work: takes the words for its QPN, unless another QP that is at work
 * has them. */
void shm_ack_want(struct shm_ack *b, struct ibt_qp *q);
/* Clears and frees q's words, if q has words. */
void shm_ack_leave(struct shm_ack *b, struct ibt_qp *q);
/* A packet for q was handled: writes the PSNs before which q has accepted and
 * taken all. */
void shm_ack_note(struct shm_ack *b, struct ibt_qp *q);
/* Has q an ACK that the peer does not read in this page?  Then the ACK packet
 * leaves before the next request of q. */
bool shm_ack_precedes(const struct shm_ack *b, const struct ibt_qp *q);
/* The ACK packet of q is sent now, before a request of q. */
void shm_ack_sends(const struct shm_ack *b, struct ibt_qp *q);
/*
 * True: q sends no ACK packet now, since the peer has taken that PSN or the
 * packet waits.  False: the caller sends the ACK packet if q owes one.
 * @follows: request packets of q have just been sent to the peer.
 */
bool shm_ack_keeps_ack(struct shm_ack *b, struct ibt_qp *q, bool follows);
/* Activates the QPs whose ACK packets have waited for as long as they may. */
void shm_ack_tick(struct shm_ack *b, uint64_t now_ns);
/* Returns when shm_ack_tick is due; UINT64_MAX: never. */
uint64_t shm_ack_deadline(const struct shm_ack *b);
/* @shut true: activates all QPs whose ACK packets wait, and lets none wait
 * until a call with false. */
void shm_ack_shut(struct shm_ack *b, bool shut);
/* Has a peer accepted packets that are unacknowledged here? */
bool shm_ack_has_news(const struct shm_ack *b);
/* Completes the requests that peers have accepted.  The caller looks after it
 * has received packets and before it gives them to engine_rx, so that a request
 * is complete before what its peer sent afterwards is handled. */
void shm_ack_look(struct shm_ack *b, uint64_t now_ns);

#endif
