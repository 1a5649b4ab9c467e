/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ACKs within a host without packets.  Beside a process's credits its page has
 * a few words for queue pairs that are connected to others of this host,
 * those that are at work:
 *
 *	the responder's page			the requester's page
 *	accepted: all before this PSN	->	it completes requests
 *	the ACK packet need not leave	<-	taken: all before this PSN
 *
 * The responder posts a PSN where it owes an ACK (IBTA 9.7.5.1), and sends the
 * packet all the same unless the requester has written that it took just that
 * PSN.  So nothing depends on who looks: a requester that sleeps, captures or
 * has no page gets packets.  NAKs and answers are always packets.
 *
 * A stream's requester is always a little behind.  So the packet waits while
 * the last one is under way, and while the requester reads the shared page, as
 *it has taken more than a packet told it; but not for longer than
 *SHM_ACK_WAIT_NS since it took something, and not for one who is so little
 *behind that it waits for each answer.  And it waits behind a request of our
 *own to the same peer, which looks at the shared page when that comes, for
 *SHM_ACK_RIDE_NS if it does not.
 *
 * A word names both QPNs, or the PSN is not for the reader: words of another
 * connection are left alone.  What another process wrote is input; a wrong PSN
 * ends requests early, as a wrong ACK of it would, and no others.
 *
 * Owner: the engine; lock: the progress lock.  Sans-IO.
 */
#ifndef ENGINE_SHM_ACK_H
#define ENGINE_SHM_ACK_H

#include "engine/credit.h"
#include "ibt/ibt.h"

#define SHM_ACK_WAIT_NS 50000
/* A short timer costs who sleeps more than the packet would. */
#define SHM_ACK_RIDE_NS 5000000

struct shm_ack {
	struct ibt *ibt;
	struct list trusting; /* struct ibt_qp, by `owing`: their ACKs wait */
	bool is_shut;	      /* they may not: nobody will send them later */
	struct credit_page *page; /* ours; NULL: we take no part */
	const struct credit *credits;
	uint32_t (*class_of)(uint32_t qpn);
	struct ibt_qp *qps[CREDIT_POSTS]; /* who has which word */
};

void shm_ack_init(struct shm_ack *b, struct ibt *t,
		  const struct credit *credits,
		  uint32_t (*class_of)(uint32_t qpn));
/* page NULL: packets alone. */
void shm_ack_open(struct shm_ack *b, struct credit_page *page);
/* q has a new state: it may lose its words. */
void shm_ack_modified(struct shm_ack *b, struct ibt_qp *q);
/* q is at work: it gets its words, unless another who is has them. */
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
