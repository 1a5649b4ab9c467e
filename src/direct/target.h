/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair of this host as its peer sees it: requests are executed there
 * by who makes them, with the target's tables and the meaning of the wire
 * (IBTA Vol 1, 9.4 and 9.7), under its responder lock (struct qp_target).
 *
 *	initiator				target
 *	judge by the target's keys
 *	copy to or from its memory
 *	take its receive, complete in its CQ	polls it
 *	letter, and a kick if it sleeps		raises the event, fails,
 *explains
 *
 * Another process's arena is input: offsets are checked before use.
 * Owner: the QP at the near end; lock: its lane's.  Sans-IO.
 */
#ifndef DIRECT_TARGET_H
#define DIRECT_TARGET_H

#include "hca/access.h"
#include "hca/explain.h"
#include "hca/hca.h"
#include "ibt/verdict.h"
#include "util/list.h"

/*
 * Where the target's queue pair, its receives and what peers write of it lie:
 * each word was read once and checked.  Good as long as that queue pair has its
 * serial.
 */
struct target_places {
	aoff self; /* 0: nothing is known */
	uint32_t serial, type, pd, recv_pd, row;
	aoff target, recv_cq, srq, slots;
	uint32_t slot_count, depth, stride, max_sge;
};

struct target_ref {
	struct list kick; /* it sleeps and must be woken */
	struct hca *hca;  /* the target's adapter; borrowed */
	/* Our slot in its arena, borrowed; NULL: it is this process, whose
	 * memory takes atomics. */
	struct access *access;
	void *owner;   /* whose it is, for the host */
	bool is_gone;  /* its process has ended */
	uint32_t type; /* HCA_QPT_*: of both */
	uint32_t path; /* enum ibt_path; UD: of each target */
	uint32_t qpn;  /* the target's */
	/* What the target must think of us. */
	uint32_t our_qpn, our_psn;
	uint8_t our_ip[16];
	uint32_t row; /* of the target, when known */
	struct target_places places;
	uint32_t connection;  /* of the target, from the first request on; 0 */
	bool is_asked;	      /* it executes a request for us */
	bool is_busy;	      /* somebody else is at work at its responder */
	bool waits_for_place; /* for what lies with receives to be collected */
	uint64_t asked_ns;    /* since then, either */
};

enum direct_result {
	DIRECT_DONE,
	DIRECT_LOST,	     /* it is not ready */
	DIRECT_CLOSED,	     /* it is gone or in error */
	DIRECT_RNR,	     /* no receive is posted */
	DIRECT_ASKED_TARGET, /* the target will do it: ask again */
	DIRECT_BUSY,	     /* somebody is at work there: the same */
	DIRECT_REFUSED,	     /* `verdict`; of RC the target has failed */
	DIRECT_GONE,	     /* its process has ended */
	DIRECT_DENIED,	 /* the kernel does not let us to its memory any more */
	DIRECT_OUR_FAULT /* our own memory is not mapped */
};

/* Stretches of one space's memory. */
struct direct_memory {
	struct space *space;
	struct space_vec vec[SPACE_VEC_MAX];
	size_t n;
};

/* A piece of a message, [offset, offset + bytes) of `total`. */
struct direct_request {
	uint8_t opcode; /* enum hca_wr */
	bool solicited;
	uint32_t total, offset, bytes;
	uint32_t rkey, imm_be;
	uint32_t qkey, sl; /* UD, of which `data` begins with the GRH */
	uint64_t va, swap_add, compare;
	const uint8_t *data; /* what is sent, or NULL: as in near */
	struct direct_memory initiator;
	uint64_t now_ns;
	struct eager eager; /* what its receive is to carry */
	/* out */
	uint32_t verdict; /* enum verdict */
	uint8_t rnr_timer;
	uint64_t found;	  /* by an atomic */
	bool kick;	  /* the target sleeps */
	bool is_ours;	  /* it was our memory that was not there */
	bool is_gone;	  /* or the target's process */
	bool is_denied;	  /* or the kernel would not let us */
	bool is_revoked;  /* the target goes on without us: nothing is done, */
	bool is_executed; /* but an atomic that was before */
	bool is_full; /* it has to collect completions before there are more */
};

/* Nothing is known of it yet. */
static inline void direct_request_clear(struct direct_request *r)
{
	r->eager.at = 0;
	r->kick = r->is_ours = r->is_gone = r->is_denied = false;
	r->is_revoked = r->is_executed = r->is_full = false;
}

enum direct_result target_run(struct target_ref *l, struct direct_request *r);

/*
 * UC goes by packets from here on: until the target has been told, it takes
 * what comes by packets from a peer that it has heard directly for forged.
 */
void target_leave(struct target_ref *l);

/* Small requests, whole ones, of one opcode: SEND, WRITE or READ. */
#define DIRECT_BATCH_MAX 64 /* at most */

struct direct_batch {
	/* Describe the i-th in *r, as the first is; false: there is none. */
	bool (*next)(void *arg, uint32_t i, struct direct_request *r);
	void *arg;
	struct direct_request
		r; /* the first; out: as of target_run, but no verdict */
};

/*
 * One visit for all of them.  How many of them were executed: those that
 * follow have to be run alone, which may be the first.
 */
uint32_t target_run_batch(struct target_ref *l, struct direct_batch *s);
/* Has something changed for one that was told DIRECT_LOST, DIRECT_RNR or
 * DIRECT_ASKED_TARGET? */
bool target_is_ready(struct target_ref *l, bool wants_receive);
/* The sentence behind a note, whose words are the same in each process, and the
 * verdict; a note that makes no sense is one of an invalid request. */
enum verdict target_explain(const struct target_failure *there,
			    struct explain *x);

#endif
