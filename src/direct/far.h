/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue pair of this host as its peer sees it: requests are executed there
 * by who makes them, with the target's tables and the meaning of the wire
 * (IBTA Vol 1, 9.4 and 9.7), under its responder lock (struct qp_far).
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
#ifndef DIRECT_FAR_H
#define DIRECT_FAR_H

#include "hca/explain.h"
#include "hca/guest.h"
#include "hca/hca.h"
#include "ibt/verdict.h"
#include "util/list.h"

/*
 * Where the target's queue pair, its receives and what peers write of it lie:
 * each word was read once and checked.  Good as long as that queue pair has its
 * serial.
 */
struct far_places {
	aoff self; /* 0: nothing is known */
	uint32_t serial, type, pd, recv_pd, row;
	aoff far, recv_cq, srq, slots;
	uint32_t slot_count, depth, stride, max_sge;
};

struct far_link {
	struct list kick; /* it sleeps and must be woken */
	struct hca *hca;  /* the target's adapter; borrowed */
	/* Our slot in its arena, borrowed; NULL: it is this process, whose
	 * memory takes atomics. */
	struct guest *guest;
	void *owner;   /* whose it is, for the host */
	bool is_gone;  /* its process has ended */
	uint32_t type; /* HCA_QPT_*: of both */
	uint32_t way;  /* enum ibt_way; UD: of each target */
	uint32_t qpn;  /* the target's */
	/* What the target must think of us. */
	uint32_t our_qpn, our_psn;
	uint8_t our_ip[16];
	uint32_t row; /* of the target, when known */
	struct far_places places;
	uint32_t connection;  /* of the target, from the first request on; 0 */
	bool is_asked;	      /* it executes a request for us */
	bool is_busy;	      /* somebody else is at work at its responder */
	bool waits_for_place; /* for what lies with receives to be collected */
	uint64_t asked_ns;    /* since then, either */
};

enum far_answer {
	FAR_DONE,
	FAR_LOST,     /* it is not ready */
	FAR_CLOSED,   /* it is gone or in error */
	FAR_RNR,      /* no receive is posted */
	FAR_ASKED_IT, /* the target will do it: ask again */
	FAR_BUSY,     /* somebody is at work there: the same */
	FAR_REFUSED,  /* `verdict`; of RC the target has failed */
	FAR_GONE,     /* its process has ended */
	FAR_DENIED,   /* the kernel does not let us to its memory any more */
	FAR_OUR_FAULT /* our own memory is not mapped */
};

/* Stretches of one space's memory. */
struct far_memory {
	struct space *space;
	struct space_vec vec[SPACE_VEC_MAX];
	size_t n;
};

/* A piece of a message, [offset, offset + bytes) of `total`. */
struct far_request {
	uint8_t opcode; /* enum hca_wr */
	bool solicited;
	uint32_t total, offset, bytes;
	uint32_t rkey, imm_be;
	uint32_t qkey, sl; /* UD, of which `data` begins with the GRH */
	uint64_t va, swap_add, compare;
	const uint8_t *data; /* what is sent, or NULL: as in near */
	struct far_memory near;
	uint64_t now_ns;
	struct carry carry; /* what its receive is to carry */
	/* out */
	uint32_t verdict; /* enum verdict */
	uint8_t rnr_timer;
	uint64_t found;	  /* by an atomic */
	bool kick;	  /* the target sleeps */
	bool is_ours;	  /* it was our memory that was not there */
	bool is_gone;	  /* or the target's process */
	bool is_denied;	  /* or the kernel would not let us */
	bool is_seized;	  /* the target goes on without us: nothing is done, */
	bool is_executed; /* but an atomic that was before */
	bool is_full; /* it has to collect completions before there are more */
};

/* Nothing is known of it yet. */
static inline void far_clear(struct far_request *r)
{
	r->carry.at = 0;
	r->kick = r->is_ours = r->is_gone = r->is_denied = false;
	r->is_seized = r->is_executed = r->is_full = false;
}

enum far_answer far_run(struct far_link *l, struct far_request *r);

/*
 * UC goes by packets from here on: until the target has been told, it takes
 * what comes by packets from a peer that it has heard directly for forged.
 */
void far_leave(struct far_link *l);

/* Small requests, whole ones, of one opcode: SEND, WRITE or READ. */
#define FAR_SERIES 64 /* at most */

struct far_series {
	/* Describe the i-th in *r, as the first is; false: there is none. */
	bool (*next)(void *arg, uint32_t i, struct far_request *r);
	void *arg;
	struct far_request
		r; /* the first; out: as of far_run, but no verdict */
};

/*
 * One visit for all of them.  How many of them were executed: those that
 * follow have to be run alone, which may be the first.
 */
uint32_t far_run_series(struct far_link *l, struct far_series *s);
/* Has something changed for one that was told FAR_LOST, FAR_RNR or
 * FAR_ASKED_IT? */
bool far_is_ready(struct far_link *l, bool wants_receive);
/* The sentence behind a note, whose words are the same in each process, and the
 * verdict; a note that makes no sense is one of an invalid request. */
enum verdict far_explain(const struct far_note *there, struct explain *x);

#endif
