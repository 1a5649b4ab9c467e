/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target as the initiator sees it: a queue pair of this host, whose
 * requests the initiator executes itself, by the target's tables and with the
 * semantics of the wire (IBTA Vol 1, 9.4 and 9.7), under the responder lock
 * (struct qp_target).
 *
 *	initiator                            target
 *	judge by the target's keys
 *	copy to or from the target's memory
 *	take a receive, leave a completion   polls the completion
 *	set notify bits, kick a sleeper      raises the event, fails, explains
 *
 * The target's arena is input: offsets are checked before use.  Owner: the
 * initiator's QP; lock: as in initiator.h.  Sans-IO.
 */
#ifndef DIRECT_TARGET_H
#define DIRECT_TARGET_H

#include "hca/access.h"
#include "hca/explain.h"
#include "hca/hca.h"
#include "ibt/verdict.h"
#include "util/list.h"

/* A queue pair's link to one target. */
struct target_ref {
	struct list kick; /* on a list of targets that have to be woken */
	struct hca *hca;  /* the target's adapter; borrowed */
	/* The initiator's access slot in that arena, borrowed; NULL: the target
	 * is in this process, whose memory takes atomics. */
	struct access *access;
	void *owner;	   /* the host's struct for the target's process */
	bool is_gone;	   /* the target's process has ended */
	bool has_no_eager; /* direct_queues.has_no_eager */
	uint32_t type;	   /* HCA_QPT_*, of both ends */
	uint32_t path;	   /* enum ibt_path; UD has one for each target */
	uint32_t qpn;	   /* the target's */
	/* The QPN, the PSN and the address that the target's attributes must
	 * name as its peer's: the initiator's. */
	uint32_t src_qpn, src_psn;
	uint8_t src_ip[16];
	uint32_t row; /* the target's row in the table of QPs, when known */
	/*
	 * A copy of the target's queue pair, of which each word was read once
	 * and each place was checked; qp.self is 0 if there is none.  The
	 * places are valid as long as the queue pair has this serial, the
	 * attributes as long as it has this attr_serial.
	 */
	struct qp qp;
	/* The target's qp.connection since the first request; 0: none yet. */
	uint32_t connection;
	/* the target's process executes a request of this link */
	bool is_asked;
	bool is_busy;	      /* another process holds the responder lock */
	bool waits_for_place; /* the target has to collect completions first */
	uint64_t asked_ns;    /* since when one of these three holds */
};

/* Returns a link to no target yet, all zero; NULL: there is no memory.  The
 * caller owns the link, and frees it by free(). */
struct target_ref *target_new(void);

enum direct_result {
	DIRECT_DONE,
	DIRECT_LOST,	     /* the target is not ready to receive */
	DIRECT_CLOSED,	     /* the target is destroyed or in ERR */
	DIRECT_RNR,	     /* no receive is posted */
	DIRECT_ASKED_TARGET, /* the target executes the request: ask again */
	DIRECT_BUSY,	     /* another process is at work: ask again */
	DIRECT_REFUSED,	     /* for outcome.verdict; an RC target has failed */
	DIRECT_GONE,	     /* the target's process has ended */
	DIRECT_DENIED,	     /* the kernel denies access to its memory now */
	DIRECT_OUR_FAULT     /* the initiator's own memory is not mapped */
};

/* Ranges of one address space. */
struct direct_memory {
	struct space *space;
	struct space_vec vec[SPACE_VEC_MAX];
	size_t n;
};

/* Results of target_run. */
struct direct_outcome {
	uint32_t verdict; /* enum verdict */
	uint8_t rnr_timer;
	uint64_t found; /* the value that an atomic found */
	bool kick;	/* the target sleeps and has to be woken */
	bool is_ours;	/* the initiator's memory was not mapped */
	bool is_gone;	/* the target's process has ended */
	bool is_denied; /* the kernel denied access to the target's memory */
	/* The access was revoked: nothing was done, but for an atomic that
	 * was executed before (is_executed). */
	bool is_revoked;
	bool is_executed;
	bool is_full; /* the target has to collect completions first */
};

/* A piece of a message, [offset, offset + bytes) of `total`. */
struct direct_request {
	uint8_t opcode; /* enum hca_wr */
	bool solicited;
	uint32_t total, offset, bytes;
	uint32_t rkey, imm_be;
	uint32_t qkey, sl; /* UD, where `data` begins with the GRH */
	uint64_t va, swap_add, compare;
	const uint8_t *data; /* inline payload; NULL: it is in `initiator` */
	struct direct_memory initiator; /* the initiator's elements */
	uint64_t now_ns;
	struct eager eager; /* the message to leave with its receive */
	struct direct_outcome outcome;
};

/* Clears the results. */
static inline void direct_request_clear(struct direct_request *r)
{
	r->eager.at = 0;
	r->outcome.kick = r->outcome.is_ours = r->outcome.is_gone =
		r->outcome.is_denied = false;
	r->outcome.is_revoked = r->outcome.is_executed = r->outcome.is_full =
		false;
}

/* Executes r at the target, or says why not. */
enum direct_result target_run(struct target_ref *l, struct direct_request *r);

/*
 * UC: tells the target that the initiator sends packets from here on.  Until
 * then the target takes packets of a peer that goes direct for forged.
 */
void target_leave(struct target_ref *l);

/* Requests of one batch at most. */
#define DIRECT_BATCH_MAX 64

/* Small whole requests of one opcode, SEND, WRITE or READ, or one atomic. */
struct direct_batch {
	/* Describes request i in *r, as the first was; false: there are no
	 * more. */
	bool (*next)(void *arg, uint32_t i, struct direct_request *r);
	void *arg;
	/* The first request; then the results, as target_run's without a
	 * verdict. */
	struct direct_request r;
};

/*
 * Executes a batch under one responder lock.  Returns how many requests were
 * executed; the next one, which may be the first, has to be run alone.
 */
uint32_t target_run_batch(struct target_ref *l, struct direct_batch *s);
/* May the request be tried again after DIRECT_LOST, DIRECT_RNR, DIRECT_BUSY or
 * DIRECT_ASKED_TARGET?  @wants_receive: after DIRECT_RNR. */
bool target_is_ready(struct target_ref *l, bool wants_receive);
/*
 * Fills *x with the facts of a target's note, which another process wrote, and
 * returns its verdict.  A note that makes no sense is taken for that of an
 * invalid request.
 */
enum verdict target_explain(const struct target_failure *there,
			    struct explain *x);

#endif
