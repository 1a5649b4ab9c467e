/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiator's side of requests without packets, and the handling of the
 * notify bits that peers have set, which runs in the target's process.
 *
 * The path of a connection is decided before its first request, so that no
 * request overtakes another.  initiator_attach chooses the direct path,
 * initiator_refuse chooses packets.  The path then stays until RESET, with two
 * exceptions.  A direct connection of UC changes to packets at the first
 * request that cannot be executed.  A direct connection by LID changes to
 * packets once the subnet would no longer deliver its packets, or one of its
 * QPs may migrate (initiator_leave).
 *
 * Each piece of a message takes one PSN.  rc_comp handles RNR waits and
 * retries, and completes requests.  A queue pair waits for its peer if the peer
 * has no receive, is not ready, is closed or has ended, if the peer's process
 * executes the request (target_ref.is_asked), or if the request has to be run
 * again (target_ref.is_busy).  The queue pair is then on the list
 * direct.waiting of struct ibt, and initiator_look activates it once it can go
 * on.  For a peer that is closed or has ended, mostly the ACK timer does so.
 *
 * Owner: the engine.  Lock: the progress lock and all post locks, or the QP's
 * post lock alone for calls from initiator_apart.c.  Sans-IO.
 */
#ifndef DIRECT_INITIATOR_H
#define DIRECT_INITIATOR_H

#include "direct/target.h"
#include "ibt/ibt.h"

/* The most bytes of a piece, unless the engine was made with another size.
 * initiator_apart_post returns once it has moved this many bytes. */
#define INITIATOR_PIECE (1u << 20)

/* Makes the path of q, a connected QP, direct to its peer in the adapter
 * `target`.  @access: this process's access slot there; NULL: the peer is in
 * this process.  @owner: the host's struct for the peer's process.  target,
 * access and owner are borrowed until initiator_released returns owner.
 * Returns 0, or -ENOMEM: the path is unchanged and nothing is borrowed.  Gives
 * up q's link to an earlier target in either case. */
int initiator_attach(struct ibt *t, struct ibt_qp *q, struct hca *target,
		     struct access *access, void *owner);
/* Makes the requests of q, from the cursor on, go by packets.  If requests were
 * executed at a target whose process lives, the caller has called
 * target_announce_packets, since the target drops packets otherwise. */
void initiator_refuse(struct ibt_qp *q);
/* The next step for a QP whose path is direct. */
enum initiator_next {
	INITIATOR_EXECUTE, /* the next request is executed */
	/* The next request waits until the subnet is asked again. */
	INITIATOR_ASK,
	/* The next request goes by packets (initiator_leave), since the QP may
	 * migrate. */
	INITIATOR_LEAVE,
};
/* Returns the next step for q, whose path is direct. */
enum initiator_next initiator_next(const struct ibt_qp *q);
/* Makes q, an RC QP by LID whose path is direct, send packets from now on.
 * Tells the target the PSN of the first one.  No request of q may have been
 * executed in part. */
void initiator_leave(struct ibt *t, struct ibt_qp *q);
/* Gives up the links of a QP that is destroyed. */
void initiator_fini(struct ibt *t, struct ibt_qp *q);
/* Takes over a link that its QP no longer uses.  Keeps a link with an owner for
 * initiator_released, and frees a link without an owner. */
void initiator_release(struct ibt *t, struct target_ref *l);
/* Frees a link that initiator_release has kept, and returns its owner; NULL:
 * there are no more such links. */
void *initiator_released(struct ibt *t);
/* Puts the target of q on the list `to_wake` if r->outcome.must_wake is set:
 * the target's process sleeps and has to be woken. */
void initiator_wake(struct ibt_qp *q, struct list *to_wake,
		    const struct direct_request *r);
/* Puts q on the list of QPs that wait for their peer, for initiator_look,
 * unless q is in ERR. */
void initiator_wait(struct ibt *t, struct ibt_qp *q);
/* Does a request of q wait until the path of q is decided? */
bool initiator_is_undecided(const struct ibt_qp *q);
/*
 * Executes the piece at the cursor of the RC QP q, or a batch of small requests
 * from the cursor on, and puts a target that must be woken on the list
 * `to_wake`.
 * Returns the sum of the bytes that moved and the number of pieces: 1, or one
 * for each request of the batch.  0: nothing was executed, and q waits, has
 * nothing to execute, has failed, or sends packets from now on.
 */
uint32_t initiator_turn(struct ibt *t, struct ibt_qp *q, struct list *to_wake,
			uint64_t now_ns);
/*
 * Executes the piece at the cursor of a UC QP, and puts a target that must be
 * woken on the list `to_wake`.  If the target cannot take the piece, the path
 * of the QP changes to packets.  Returns the bytes that moved plus 1; 0: the
 * piece was not executed.
 */
uint32_t initiator_turn_unreliable(struct ibt *t, struct ibt_qp *q,
				   struct list *to_wake, uint64_t now_ns);
/* Executes w, the request at the cursor, which has begun, and the requests
 * after w as one batch, and puts a target that must be woken on the list
 * `to_wake`.  Returns their bytes plus 1 for each request; 0: none was
 * executed, or the value that an atomic found could not be placed. */
uint32_t initiator_run_batch(struct ibt *t, struct ibt_qp *q, struct wqe *w,
			     struct list *to_wake, uint64_t now_ns);
/* May w, by its length, be in a batch of more than one request? */
bool initiator_is_small(const struct ibt *t, const struct wqe *w);
/* Counts the piece at the cursor, which has moved, and moves the cursor. */
void initiator_count_moved(struct ibt *t, struct ibt_qp *q, uint8_t opcode,
			   uint32_t bytes);
/* Activates the QPs that waited for their peer and can go on.  Returns the time
 * at which the next call is due, in ns of the caller's clock; UINT64_MAX: the
 * next engine_tick is early enough. */
uint64_t initiator_look(struct ibt *t);
/* Handles notify bits (enum qp_notify) that peers have set for q. */
void initiator_notified(struct ibt *t, struct ibt_qp *q, uint32_t bits);

#endif
