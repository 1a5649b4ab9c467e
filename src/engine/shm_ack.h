/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACKs within a host without packets.  The page of a process has, beside its
 * credits, a few words for queue pairs that are at work and connected to queue
 * pairs of this host:
 *
 *	the responder's page			the requester's page
 *	accepted: all before this PSN	->	completes requests
 *	need not send the ACK packet	<-	taken: all before this PSN
 *
 * The responder writes a PSN when it has to send an ACK (IBTA 9.7.5.1), and
 * sends the ACK packet all the same, unless the requester has written that it
 * has taken exactly that PSN.  So nothing depends on the requester's reading: a
 * requester that sleeps, captures or has no page gets packets.  NAKs and
 * responses are always packets.
 *
 * The requester of a stream is always a little behind.  So the ACK packet waits
 * while the latest ACK packet is under way, and while the requester reads the
 * page, which shows by its having taken more than the ACK packets said.  The
 * ACK packet waits for at most SHM_ACK_WAIT_NS since the requester took
 * something, and does not wait for a requester that is so little behind that it
 * waits for each answer.  The ACK packet also waits behind a request of this QP
 * to the same peer, which reads the page when that request comes; for at most
 * SHM_ACK_REQUEST_NS, if the request does not come.
 *
 * A word names both QPNs; a word with other QPNs belongs to another connection
 * and is ignored.  A word that another process wrote is input; a wrong PSN ends
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
#define SHM_ACK_REQUEST_NS 5000000

struct shm_ack {
	struct ibt *ibt;
	struct list trusting; /* struct ibt_qp with waiting ACKs, by `owing` */
	bool is_shut;	      /* ACKs may not wait: a QP is about to end */
	struct credit_page *page; /* this process's own; NULL: packets alone */
	const struct credit *credits;
	uint32_t (*class_of)(uint32_t qpn);
	struct ibt_qp *qps[CREDIT_POSTS]; /* the QP that has each word */
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
/* A packet for q was handled: writes the PSNs that q has accepted and taken. */
void shm_ack_note(struct shm_ack *b, struct ibt_qp *q);
/* Has q an ACK that the peer does not read in this page?  Then the ACK packet
 * leaves before the next request of q. */
bool shm_ack_precedes(const struct shm_ack *b, const struct ibt_qp *q);
/* The ACK packet of q is sent now, before a request of q. */
void shm_ack_sends(const struct shm_ack *b, struct ibt_qp *q);
/*
 * Is q's ACK packet superfluous, since the peer has taken that PSN, or may it
 * wait?  @follows: it would follow request packets of q.
 */
bool shm_ack_keeps_ack(struct shm_ack *b, struct ibt_qp *q, bool follows);
/* Activates the QPs with ACKs that have waited for long enough. */
void shm_ack_tick(struct shm_ack *b, uint64_t now_ns);
/* Returns when shm_ack_tick is due; UINT64_MAX: never. */
uint64_t shm_ack_deadline(const struct shm_ack *b);
/* @shut: activates all QPs with waiting ACKs, and lets no ACK wait until a call
 * with false. */
void shm_ack_shut(struct shm_ack *b, bool shut);
/* Has a peer accepted packets that are unacknowledged here? */
bool shm_ack_has_news(const struct shm_ack *b);
/* Completes the requests that peers have accepted. */
void shm_ack_look(struct shm_ack *b, uint64_t now_ns);

#endif
