/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACKs within a host without packets.  Beside a process's credits, its page has
 * a few words for queue pairs that are at work and connected to queue pairs of
 * this host:
 *
 *	the responder's page			the requester's page
 *	accepted: all before this PSN	->	it completes requests
 *	the ACK packet need not leave	<-	taken: all before this PSN
 *
 * The responder posts a PSN where it owes an ACK (IBTA 9.7.5.1), and sends the
 * packet all the same, unless the requester has written that it took exactly
 * that PSN.  So nothing depends on the requester's reading: a requester that
 * sleeps, captures or has no page gets packets.  NAKs and responses are always
 * packets.
 *
 * The requester of a stream is always a little behind.  So the packet waits
 * while the latest packet is under way, and while the requester reads the
 * shared page, which is seen by its having taken more than a packet told it;
 * but for at most SHM_ACK_WAIT_NS since it took something, and not for a
 * requester that is so little behind that it waits for each answer.  The packet
 * also waits behind a request of our own to the same peer, which reads the
 * shared page when that request comes; for at most SHM_ACK_RIDE_NS if the
 * request does not come.
 *
 * A word names both QPNs; a word with other QPNs is another connection's and is
 * left alone.  A word that another process wrote is input; a wrong PSN ends
 * requests of that connection early, as a wrong ACK would, and no others.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_SHM_ACK_H
#define ENGINE_SHM_ACK_H

#include "engine/credit.h"
#include "ibt/ibt.h"

#define SHM_ACK_WAIT_NS 50000
/* A shorter timer would cost a sleeping process more than the packet does. */
#define SHM_ACK_RIDE_NS 5000000

struct shm_ack {
	struct ibt *ibt;
	struct list trusting; /* struct ibt_qp, by `owing`: their ACKs wait */
	bool is_shut;	      /* they may not: nobody will send them later */
	struct credit_page *page; /* ours; NULL: we take no part */
	const struct credit *credits;
	uint32_t (*class_of)(uint32_t qpn);
	struct ibt_qp *qps[CREDIT_POSTS]; /* the QP that has each word */
};

void shm_ack_init(struct shm_ack *b, struct ibt *t,
		  const struct credit *credits,
		  uint32_t (*class_of)(uint32_t qpn));
/* page NULL: packets alone. */
void shm_ack_open(struct shm_ack *b, struct credit_page *page);
/* q has a new state: it may lose its words. */
void shm_ack_modified(struct shm_ack *b, struct ibt_qp *q);
/* q is at work: takes its words, unless another QP that is at work has them. */
void shm_ack_want(struct shm_ack *b, struct ibt_qp *q);
void shm_ack_leave(struct shm_ack *b, struct ibt_qp *q);
/* A packet for q was handled: say what follows for the peer. */
void shm_ack_note(struct shm_ack *b, struct ibt_qp *q);
/*
 * Is q's ACK not to be sent, as the peer has taken what it says, or not now?
 * It follows packets of q, or not.
 */
bool shm_ack_keeps_ack(struct shm_ack *b, struct ibt_qp *q, bool follows);
/* Let go the ACKs that have waited for long enough; when to do so again. */
void shm_ack_tick(struct shm_ack *b, uint64_t now_ns);
uint64_t shm_ack_deadline(const struct shm_ack *b);
/* Let all go, and keep none while shut. */
void shm_ack_shut(struct shm_ack *b, bool shut);
/* Is there news of a peer? */
bool shm_ack_has_news(const struct shm_ack *b);
/* Complete what peers have accepted. */
void shm_ack_look(struct shm_ack *b, uint64_t now_ns);

#endif
