/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target as the initiator sees it: a queue pair of this host, at which the
 * initiator executes its requests itself.  The initiator uses the target's
 * tables, keeps the semantics of packets (IBTA Vol 1, 9.4 and 9.7), and holds
 * the responder lock (struct qp_target).
 *
 *	initiator                            target
 *	judge by the target's keys
 *	copy to or from the target's memory
 *	take a receive, leave a completion   polls the completion
 *	set notify bits, wake a sleeper      serves the bits: raises events,
 *					     fails and explains
 *
 * The target's arena is input: offsets are checked before use.  Owner: the
 * initiator's QP.  Lock: the progress lock and all post locks, or in the
 * functions of initiator_apart.h the QP's post lock alone.  Sans-IO.
 */
#ifndef DIRECT_TARGET_H
#define DIRECT_TARGET_H

#include "hca/access.h"
#include "hca/explain.h"
#include "hca/hca.h"
#include "ibt/verdict.h"
#include "util/list.h"
#include "util/serial24.h"
#include "util/shared.h"

/* A queue pair's link to one target. */
struct target_ref {
	/* On a list of targets that have to be woken or, once the QP has given
	 * the link up, on the list direct.unused of struct ibt. */
	struct list to_wake;
	struct hca *hca; /* the target's adapter; borrowed */
	/* The initiator's access slot in the target's arena, borrowed.  NULL:
	 * the target is in this process, which can execute every atomic. */
	struct access *access;
	void *owner;  /* the host's struct for the target's process; borrowed */
	bool is_gone; /* the target's process has ended */
	bool has_no_eager; /* no SEND of this link goes as an eager message */
	/* The last SEND that was too long for a slot found a free bounce buffer
	 * (hca/eager.h). */
	bool has_bounces;
	uint32_t type; /* HCA_QPT_*, of both ends */
	uint32_t path; /* UD: enum ibt_path of this link */
	uint32_t qpn;  /* the target's QPN */
	/* The initiator's QPN, PSN (RC alone) and address, which the attributes
	 * of a connected target must name as those of its peer. */
	uint32_t src_qpn, src_psn;
	uint8_t src_ip[16];
	/* By LID, in place of src_ip; NULL otherwise.  way: what the subnet has
	 * said of the connection's packets.  changes: how often the subnet has
	 * changed so far.  ah: the initiator's path.  All three are borrowed
	 * from the initiator. */
	const struct hca_way *way;
	const shared_u32 *changes;
	const struct hca_ah *ah;
	/* The row in which the target was last found in the table of QPs. */
	uint32_t row;
	/*
	 * A copy of members of the target's queue pair; qp.self is 0 if there
	 * is no copy.  Each word was read once, and each offset was checked.
	 * The offsets are valid while the target's queue pair has this serial,
	 * the attributes while it has this attr_serial.
	 */
	struct qp qp;
	/* qp.connection of the target at the first request; 0: no request was
	 * made yet. */
	uint32_t connection;
	/* The target's process executes a request of this link. */
	bool is_asked;
	/* The last piece of a WRITE with immediate was copied before the access
	 * was revoked.  The request is run again, copies nothing, and completes
	 * its receive. */
	bool is_copied;
	/* The request could not be executed yet: another thread kept the
	 * responder lock or the owner waited for that lock,
	 * direct_outcome.is_full was set, or the access was revoked. */
	bool is_busy;
	/* An eager message belongs to memory that the request uses: the target
	 * must first copy the message there. */
	bool waits_for_place;
	/* When is_asked or is_busy was first set, by the clock of
	 * direct_request.now_ns. */
	uint64_t asked_ns;
};

/* Returns a link without a target, which the caller owns and frees by free().
 * All members but to_wake are zero.  NULL: out of memory. */
struct target_ref *target_new(void);

/* The result of target_run. */
enum direct_result {
	DIRECT_DONE, /* the request was executed */
	/* The target is not ready to receive, is not connected to the
	 * initiator, or has failed and is not in ERR yet. */
	DIRECT_LOST,
	/* The target is destroyed or in ERR, or has refused the request and
	 * failed without a NAK. */
	DIRECT_CLOSED,
	DIRECT_RNR,	     /* no receive is posted */
	DIRECT_ASKED_TARGET, /* the target executes the request: run again */
	DIRECT_BUSY,	     /* see target_ref.is_busy: run again */
	DIRECT_REFUSED,	     /* outcome.verdict: why; an RC target has failed */
	/* The target's process has ended, or has executed another program.  The
	 * request may have been executed before. */
	DIRECT_GONE,
	DIRECT_DENIED, /* the kernel no longer permits the access */
	/* By LID, before any part of a message was executed: the target's own
	 * path is not the one that the subnet was asked about, or may migrate.
	 * The initiator then sends packets, which may still arrive. */
	DIRECT_ASTRAY,
	DIRECT_OUR_FAULT /* the initiator's own memory is not mapped */
};

/* The first n ranges of vec, in one address space. */
struct direct_memory {
	struct space *space;
	struct space_vec vec[SPACE_VEC_MAX];
	size_t n;
};

/* Results of target_run. */
struct direct_outcome {
	uint32_t verdict; /* enum verdict */
	/* DIRECT_RNR or is_dry: the target's min_rnr_timer. */
	uint8_t rnr_timer;
	uint64_t found; /* the value that an atomic found */
	bool must_wake; /* the target sleeps and has to be woken */
	bool is_ours;	/* the initiator's memory was not mapped */
	bool is_gone;	/* the target's process has ended */
	bool is_denied; /* the kernel denied access to the target's memory */
	/* The access was revoked.  Unless is_executed is set, the request must
	 * be executed again. */
	bool is_revoked;
	/* The piece of a WRITE or READ was copied, and is not the last piece of
	 * a WRITE with immediate; or the atomic was executed in memory that
	 * both processes map. */
	bool is_executed;
	/* The request must be tried again: the target must first collect
	 * completions or eager messages, or a receive can be taken now. */
	bool is_full;
	/* There is no receive for the request. */
	bool is_dry;
};

/* A piece of a message. */
struct direct_request {
	uint8_t opcode; /* enum hca_wr */
	bool solicited; /* the message asks for a solicited event */
	/* The message has `total` bytes; the piece is [offset, offset + bytes)
	 * of them. */
	uint32_t total, offset, bytes;
	/* rkey: of the target's memory.  imm_be: the immediate data in network
	 * byte order; for SEND with Invalidate, the key to invalidate. */
	uint32_t rkey, imm_be;
	/* UD alone: the Q_Key and the service level.  For UD, `data` begins
	 * with the GRH. */
	uint32_t qkey, sl;
	/* va: the target's address of the message's first byte, which rkey
	 * translates.  swap_add, compare: the operands of an atomic; swap_add
	 * also has the 8 bytes of an ATOMIC WRITE. */
	uint64_t va, swap_add, compare;
	const uint8_t *data; /* the payload; NULL: it is in `initiator` */
	struct direct_memory initiator; /* the memory of the request's SGEs */
	uint64_t now_ns;		/* the progress clock */
	/* The eager message to leave in the slot of its receive, or the address
	 * of one that is in a bounce buffer; eager.at is 0: there is none. */
	struct eager eager;
	struct direct_outcome outcome;
};

/* Clears r->eager, and all members of r->outcome but verdict, rnr_timer and
 * found, before r is run. */
static inline void direct_request_clear(struct direct_request *r)
{
	r->eager.at = 0;
	r->outcome.must_wake = r->outcome.is_ours = r->outcome.is_gone =
		r->outcome.is_denied = r->outcome.is_dry = false;
	r->outcome.is_revoked = r->outcome.is_executed = r->outcome.is_full =
		false;
}

/* Executes r at the target.  Returns DIRECT_DONE, or why r was not executed;
 * r->outcome has the details. */
enum direct_result target_run(struct target_ref *l, struct direct_request *r);

/*
 * Tells the target that the initiator sends packets from now on.  RC: the first
 * one has this PSN.  Before this call, the target drops packets of this
 * connection: they must be forged, since the initiator executes its requests
 * directly.  Does nothing if no request of the connection has reached the
 * target yet, or if the target's process has ended.
 */
void target_announce_packets(struct target_ref *l, struct serial24 psn);

/* By LID: has the subnet changed since the fabric said that it would deliver
 * the connection's packets?  False for a link that is not by LID. */
static inline bool target_is_stale(const struct target_ref *l)
{
	return l->way && shared_load(l->changes) != l->way->changes;
}

/* The most requests in a batch. */
#define DIRECT_BATCH_MAX 64

/* Small whole requests of one opcode (SEND, SEND with immediate data, WRITE or
 * READ), or one atomic. */
struct direct_batch {
	/* Describes request i of the batch in *r; false: there is none, or it
	 * does not fit into the batch. */
	bool (*next)(void *arg, uint32_t i, struct direct_request *r);
	void *arg;
	/* The caller describes the first request here.  target_run_batch
	 * overwrites it; r.outcome then has the results of all requests. */
	struct direct_request r;
};

/*
 * Executes a batch, and takes the responder lock once for all its requests.
 * Returns how many requests were executed; 0 also if the target's process has
 * ended meanwhile.  The caller runs the next request, which may be the first,
 * alone by target_run.
 */
uint32_t target_run_batch(struct target_ref *l, struct direct_batch *s);
/* May the request be tried again after DIRECT_LOST, DIRECT_CLOSED, DIRECT_RNR,
 * DIRECT_BUSY or DIRECT_ASKED_TARGET?  @wants_receive: the result was
 * DIRECT_RNR.  True also if the target's process has ended. */
bool target_is_ready(struct target_ref *l, bool wants_receive);
/* Has the target's process ended, or executed another program? */
bool target_has_ended(const struct target_ref *l);
/*
 * Fills *x with the facts of a target's note, which another process wrote, and
 * returns the note's verdict.  If the verdict is no refusal, V_INVALID is
 * returned instead.  A cause that no refusal has becomes
 * EXPLAIN_REMOTE_INVALID, and an mr_verdict that no access has MR_BAD_KEY, so
 * that explain_text makes a whole sentence of *x.
 */
enum verdict target_explain(const struct target_failure *there,
			    struct explain *x);

/* Judges an atomic, or an ATOMIC WRITE of 8 bytes, at the address va, but not
 * the key.  Returns V_OK, or V_INVALID and sets x->detail if va is no multiple
 * of 8 (IBTA 9.4.5), or if the QP's max_dest_rd_atomic is 0.  The initiator
 * calls this function before it executes the request or leaves the request to
 * the target's process.  In the latter case that process calls the function
 * again, since it does not trust the initiator. */
enum verdict request_atomic(const struct qp *qp, uint32_t opcode, uint64_t va,
			    struct explain *x);

#endif
