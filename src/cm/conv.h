/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data and functions that the files of cm/ share: the conversation, the
 * manager, and the functions that take an input to a step of the state table.
 * Not for users of cm.h.  One thread at a time, as for struct cm.
 */
#ifndef CM_CONV_H
#define CM_CONV_H

#include "cm/cm.h"
#include "util/list.h"
#include "util/rng.h"
#include "util/wheel.h"

#define CONV_RING    64	  /* messages, and events, that wait for the caller */
#define CONV_BUCKETS 4096 /* a power of two */

/* IBTA 12.9.7, with SIDR's states (12.11.1); MRA_*_RCVD are *_WAIT here. */
enum conv_state {
	CONV_FREE,
	CONV_REQ_SENT,
	CONV_REQ_WAIT, /* the peer asked for time */
	CONV_REP_RCVD,
	CONV_REQ_RCVD,
	CONV_REP_SENT,
	CONV_REP_WAIT,
	CONV_ESTABLISHED,
	CONV_DREQ_SENT,
	CONV_TIMEWAIT,
	CONV_SIDR_SENT,
	CONV_SIDR_RCVD,
	CONV_ANSWERED, /* refused, or SIDR: repeats the answer for a while */
	CONV_CLOSED,   /* over, and the consumer has not released it */
	/* Later states follow at the end: the notes of older brokers have the
	 * numbers of the earlier ones. */
	CONV_DREQ_RCVD, /* a DREQ has come; the consumer has not answered it */
	CONV_HELD,	/* a request that waits for a listener: see request.c */
	CONV_STATES
};

enum conv_input {
	/* Messages, in the order of their attribute ids. */
	IN_REQ, /* a repetition: the first one makes the conversation */
	IN_MRA,
	IN_REJ,
	IN_REP,
	IN_RTU,
	IN_DREQ,
	IN_DREP,
	IN_SIDR_REQ, /* a repetition, as IN_REQ */
	IN_SIDR_REP,
	/* The consumer's commands. */
	IN_ACCEPT,
	IN_REJECT,
	IN_ESTABLISH,
	IN_DISCONNECT,
	IN_RELEASE,
	/* The timer has expired, with tries left. */
	IN_RETRY,
	/* The timer has expired, with no try left. */
	IN_EXHAUSTED,
	/* The peer's queue pair is in another connection now. */
	IN_STALE,
	CONV_INPUTS
};

/* How a conversation repeats its last message until an answer comes. */
struct conv_retry {
	/* The exponent n of a wait of 4.096 us * 2^n. */
	uint8_t timeout_exponent;
	/* Tries of this message that are left, and that were made. */
	uint8_t left, count;
	/* Tries of each message, as the REQ says. */
	uint8_t given;
	/* The message that a retry sends; in CONV_HELD, the request. */
	uint8_t last[MAD_BYTES];
};

struct conv {
	struct list by_local, by_remote, by_qpn; /* links of cm's tables */
	struct list queue; /* link of cm's held or answered */
	struct wheel_timer timer;
	enum conv_state state;
	/* The consumer has released the conversation, and gets no events. */
	bool is_released;
	bool is_passive;
	bool is_strict;
	/* See struct cm_note.  The conversation is not in the table by_qpn. */
	bool is_unproven;
	/* Counts for the backlog of the listener. */
	bool is_waiting;
	/* Counts in half_open[]. */
	bool is_half_open;
	/* The index by which half_open[] and held_of[] count a request
	 * (conv_sender). */
	uint16_t sender;
	uint32_t local_id, remote_id; /* remote 0: not known yet */
	uint32_t remote_qpn;
	/* An index of cm's listener[], or CONV_NO_LISTENER. */
	uint32_t listener;
	/* The owner for which the conversation counts; NULL: none. */
	struct cm_owner *owner;
	uint64_t user;
	uint64_t transaction_id;
	uint8_t local[16], peer[16];
	uint32_t scope;
	/* When the last CM_STALE was; 0: none was. */
	uint64_t doubted_ns;
	struct conv_retry retry;
};

struct conv_listener {
	struct list link; /* by service id */
	bool is_used;
	struct cm_owner *owner;
	uint64_t service_id, user;
	struct cm_where where;
	uint32_t backlog, waiting;
};

#define CONV_LISTENERS	  4096
#define CONV_NO_LISTENER  UINT32_MAX
#define CONV_RECENT	  64
#define CONV_ANSWERED_MAX 4096

#define CONV_QUEUED(node)                                                      \
	((struct conv *)(void *)((char *)(node)-offsetof(struct conv, queue)))

/* A listener that has ended, and may come again until until_ns, which is 0 in a
 * place that was never used. */
struct conv_recent {
	uint64_t service_id, until_ns;
	uint64_t owner; /* the owner's number; 0: no owner */
	struct cm_where where;
};

/* Requests that wait: for a listener, or for their consumer's answer. */
struct conv_waiting {
	/* Conversations in HELD, and in ANSWERED, the oldest first. */
	struct list held, answered;
	uint32_t held_count, answered_count;
	uint16_t held_of[CONV_BUCKETS]; /* by conv_sender */
};

/* Messages and events that the caller has yet to take. */
struct conv_output {
	struct cm_frame tx[CONV_RING];
	struct cm_event event[CONV_RING];
	uint32_t tx_head, tx_count, event_head, event_count;
};

struct cm {
	struct rng rng;
	uint64_t hash_key;
	uint32_t limit, half_open_limit;
	/* The entries of conv[]: in use; in free_list; ever used. */
	uint32_t used, free_count, fresh;
	struct conv *conv;
	uint32_t *free_list;
	struct conv_listener *listener;
	uint32_t listeners; /* how many of listener[] are in use */
	struct conv_recent recent[CONV_RECENT]; /* cm_unlisten */
	uint64_t expecting_until_ns;		/* cm_expect_listeners */
	struct list local[CONV_BUCKETS], remote[CONV_BUCKETS],
		qpn[CONV_BUCKETS], service[CONV_BUCKETS];
	uint16_t half_open[CONV_BUCKETS]; /* by conv_sender */
	struct conv_waiting waiting;
	struct wheel wheel;
	struct conv_output out;
	uint32_t rx_scope; /* the scope of cm_rx's message */
	struct cm_counters counters;
};

/* conv.c */
/*
 * Makes a conversation in no state, which counts for the owner.  Its id is
 * local_id, or is drawn if local_id is 0 or in use.  0 with *made, or
 * conv_may_own's -errno.
 */
int conv_new(struct cm *cm, struct cm_owner *owner, uint32_t local_id,
	     struct conv **made);
/* May the owner have one more conversation?  0, -EDQUOT or -ENOMEM as
 * cm_owner_may_add. */
int conv_may_own(const struct cm *cm, const struct cm_owner *owner);
/* Counts the conversation for another owner from now on; NULL: for none. */
void conv_set_owner(struct conv *c, struct cm_owner *owner);
/* Frees a conversation in any state; its owner no longer counts it. */
void conv_free(struct cm *cm, struct conv *c);
/* Finds a conversation by its own id; NULL: there is none. */
struct conv *conv_find(struct cm *cm, uint32_t local_id);
/* Finds a conversation with the peer by the peer's id; NULL: there is none. */
struct conv *conv_find_remote(struct cm *cm, const uint8_t peer[16],
			      uint32_t remote_id);
/*
 * Finds a live connection with that peer's queue pair; NULL: there is none.
 * sender NULL: finds any such connection.  Otherwise sender is the conversation
 * of this manager whose REQ names the queue pair: then only a connection is
 * found that has both ends in this manager, and the other end of which counts
 * for the sender's owner.  The REQ of an owner proves nothing about another
 * owner's queue pair.
 */
struct conv *conv_find_qpn(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
			   const struct conv *sender);
/* Does what cm_has_ended promises. */
bool conv_has_ended(struct cm *cm, const struct cm_owner *owner,
		    const uint8_t peer[16], uint32_t qpn);
/* Sets the peer's id, and enters the conversation in the table by_remote. */
void conv_set_remote(struct cm *cm, struct conv *c, uint32_t remote_id);
/* Sets the peer's QPN, and enters the conversation in the table by_qpn, unless
 * qpn is 0 or the conversation is unproven. */
void conv_set_qpn(struct cm *cm, struct conv *c, uint32_t qpn);
/*
 * Returns the index in half_open[] and held_of[] of a request's sender.  A
 * request of a conversation of this manager (active) counts for that
 * conversation's owner, whatever its address; any other request (active NULL)
 * counts for the address that it comes from.
 */
uint16_t conv_sender(const struct cm *cm, const struct conv *active,
		     const uint8_t peer[16]);
/* False: the request's sender has half_open_limit unanswered requests here. */
bool conv_may_open_half(const struct cm *cm, const struct conv *c);
/* Counts the request as half open, until conv_settle. */
void conv_open_half(struct cm *cm, struct conv *c);
/* Changes the state; nothing else does.  A conversation that is released and
 * enters CLOSED is freed. */
void conv_enter(struct cm *cm, struct conv *c, enum conv_state state);
/* Ends the counting of a request for its listener's backlog. */
void conv_stop_waiting(struct cm *cm, struct conv *c);
/* Ends the counting of a request for a backlog and as half open. */
void conv_settle(struct cm *cm, struct conv *c);
/* Returns a hash, below CONV_BUCKETS, of `data` and of the number `more`. */
uint32_t conv_hash(const struct cm *cm, const void *data, size_t bytes,
		   uint64_t more);

/* cm.c */
/*
 * Finds the listener that answers requests for the service to this address; a
 * listener at this address alone comes before one at any address. is_own: the
 * request is of a conversation of this manager.  NULL: there is none.
 */
struct conv_listener *cm_listener_at(struct cm *cm, uint64_t service_id,
				     const uint8_t ip[16], bool is_own);
/* Returns the time until which a listener for the service is expected; 0: none
 * is. */
uint64_t cm_expected_until(const struct cm *cm, uint64_t service_id,
			   const uint8_t ip[16]);

/* request.c */
/* Handles a REQ or SIDR_REQ that has come: m is the parsed message, mad its
 * bytes. */
void request_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		struct cmmsg *m, const uint8_t *mad, uint64_t now_ns);
/* The timer of a conversation in HELD has expired: the request has waited long
 * enough, or was woken. */
void request_due(struct cm *cm, struct conv *c, uint64_t now_ns);
/* A listener has room: wakes the first request that waits for it. */
void request_wake_one(struct cm *cm, uint32_t listener);
/* A listener has come: wakes the requests that wait for one like it. */
void request_wake_served(struct cm *cm);
/* A listener has ended: wakes the requests that wait for it. */
void request_wake_left(struct cm *cm, uint32_t listener);
/* A sender has one half-open request fewer: wakes the first request of that
 * sender that waits. */
void request_wake_sender(struct cm *cm, uint16_t sender);
/* Uncounts a held request: the conversation has left the list `held`. */
void request_unhold(struct cm *cm, struct conv *c);

/* step.c */
/* Runs the cell of the table that is for this state and input; false: the cell
 * is empty. */
bool step_run(struct cm *cm, struct conv *c, enum conv_input input,
	      struct cmmsg *msg, uint64_t now_ns);
/* Sends msg and keeps it for retries. */
void step_send(struct cm *cm, struct conv *c, struct cmmsg *msg);
/* Keeps msg for retries. */
void step_keep(struct conv *c, struct cmmsg *msg);
/* Sends the kept message. */
void step_again(struct cm *cm, struct conv *c);
/* Arms the timer that ends TIMEWAIT or ANSWERED; in other states does nothing.
 */
void step_linger(struct cm *cm, struct conv *c, uint64_t now_ns);
/* Sends a message that belongs to no conversation. */
void step_send_bare(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		    const struct cmmsg *msg);
/* Makes an event, unless the conversation is released; msg NULL: kind 0. */
void step_emit(struct cm *cm, const struct conv *c, enum cm_event_type type,
	       const struct cmmsg *msg);
/* Arms the retries of a message that was just sent.  Each wait is 4.096 us *
 * 2^timeout; the first waits are shorter, unless is_strict. */
void step_arm(struct cm *cm, struct conv *c, uint8_t timeout, uint8_t tries,
	      uint64_t now_ns);

#endif
