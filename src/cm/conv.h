/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of cm/ share: one conversation, the manager, and the way
 * from an input to a step.  Owner and lock: those of struct cm.
 */
#ifndef CM_CONV_H
#define CM_CONV_H

#include "cm/cm.h"
#include "util/list.h"
#include "util/rng.h"
#include "util/wheel.h"

#define CONV_RING    64	  /* messages and events that wait for the owner */
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
	CONV_ANSWERED, /* refused, or SIDR: repeats its answer for a while */
	CONV_CLOSED,   /* only its owner still knows it */
	/* behind the others, since notes of an older broker have numbers: */
	CONV_DREQ_RCVD, /* the peer ends it, our owner has not answered */
	CONV_HELD,	/* a request that nobody can take now: see request.c */
	CONV_STATES
};

enum conv_input {
	/* messages, in the order of their attribute ids */
	IN_REQ, /* one that we have had already */
	IN_MRA,
	IN_REJ,
	IN_REP,
	IN_RTU,
	IN_DREQ,
	IN_DREP,
	IN_SIDR_REQ, /* the same */
	IN_SIDR_REP,
	/* the owner's commands */
	IN_ACCEPT,
	IN_REJECT,
	IN_ESTABLISH,
	IN_DISCONNECT,
	IN_RELEASE,
	/* time; and a new REQ that names the same peer's queue pair */
	IN_RETRY,
	IN_EXHAUSTED,
	IN_STALE,
	CONV_INPUTS
};

struct conv {
	struct list by_local, by_remote, by_qpn; /* links in the tables */
	struct list queue;			 /* of HELD, or of ANSWERED */
	struct wheel_timer timer;
	enum conv_state state;
	bool is_released; /* nobody hears of its events */
	bool is_passive;
	bool is_strict;
	bool is_waiting; /* counts for its listener's backlog */
	bool is_half_open;
	/* Of a request: where half_open[] and held_of[] count it. */
	uint16_t sender;
	uint32_t local_id, remote_id; /* remote 0: not known yet */
	uint32_t remote_qpn;
	uint32_t listener;	/* or CONV_NO_LISTENER */
	struct cm_owner *owner; /* for which it counts; NULL: for none */
	uint64_t user;
	uint64_t transaction_id;
	uint8_t local[16], peer[16];
	uint32_t scope;
	uint64_t doubted_ns;	  /* CM_STALE, the last time */
	uint8_t timeout_exponent; /* 4.096 us * 2^n */
	uint8_t tries_left, tries;
	uint8_t tries_given;	 /* by the REQ, for all that follows */
	uint8_t last[MAD_BYTES]; /* the message that a retry repeats */
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

/* A listener that has gone a moment ago. */
struct conv_recent {
	uint64_t service_id, until_ns;
	struct cm_where where;
};

struct cm {
	struct rng rng;
	uint64_t hash_key;
	uint32_t limit, half_open_limit;
	uint32_t used, free_count, fresh; /* of conv[] */
	struct conv *conv;
	uint32_t *free_list;
	struct conv_listener *listener;
	uint32_t listeners; /* of listener[] in use */
	struct conv_recent recent[CONV_RECENT];
	uint32_t recent_next;
	uint64_t expecting_until_ns; /* cm_expect_listeners */
	struct list local[CONV_BUCKETS], remote[CONV_BUCKETS],
		qpn[CONV_BUCKETS], service[CONV_BUCKETS];
	uint16_t half_open[CONV_BUCKETS]; /* by conv_sender */
	/* in the order they came */
	struct list held, answered;
	uint32_t held_count, answered_count;
	uint16_t held_of[CONV_BUCKETS]; /* by conv_sender */
	struct wheel wheel;
	struct cm_frame tx[CONV_RING];
	struct cm_event event[CONV_RING];
	uint32_t rx_scope; /* of the message in hand */
	uint32_t tx_head, tx_count, event_head, event_count;
	struct cm_counters counters;
};

/* conv.c: making, finding and ending one. */
/*
 * A conversation in no state that counts for the owner, with this id, or with
 * one that is drawn if local_id is 0 or taken.  0 with *made, or the errno
 * value of conv_may_own.
 */
int conv_new(struct cm *cm, struct cm_owner *owner, uint32_t local_id,
	     struct conv **made);
/* May the owner have one more?  0, -EDQUOT or -ENOMEM as cm_owner_may_add. */
int conv_may_own(const struct cm *cm, const struct cm_owner *owner);
/* Counts it for another owner from now on. */
void conv_set_owner(struct conv *c, struct cm_owner *owner);
void conv_free(struct cm *cm, struct conv *c);
struct conv *conv_find(struct cm *cm, uint32_t local_id);
struct conv *conv_find_remote(struct cm *cm, const uint8_t peer[16],
			      uint32_t remote_id);
/*
 * A live connection with that peer's queue pair.  sender: the conversation of
 * this manager that says so of the queue pair, then only a connection of which
 * the other end, too, is this manager's and counts for the sender's owner: what
 * it says of another owner's queue pair is not believed.  NULL: any.
 */
struct conv *conv_find_qpn(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
			   const struct conv *sender);
/* One that its peer has ended, or both, lately. */
bool conv_has_ended(struct cm *cm, const uint8_t peer[16], uint32_t qpn);
void conv_set_remote(struct cm *cm, struct conv *c, uint32_t remote_id);
void conv_set_qpn(struct cm *cm, struct conv *c, uint32_t qpn);
/*
 * By what the requests of one sender are counted: the owner of the conversation
 * that sent them, whatever its addresses, or, if that is none of this
 * manager's, the address that they come from.
 */
uint16_t conv_sender(const struct cm *cm, const struct conv *active,
		     const uint8_t peer[16]);
/* False if its sender has as many unanswered requests here as it may. */
bool conv_may_open_half(const struct cm *cm, const struct conv *c);
void conv_open_half(struct cm *cm, struct conv *c);
/* The only place where a state changes. */
void conv_enter(struct cm *cm, struct conv *c, enum conv_state state);
/* It no longer counts for its listener's backlog. */
void conv_stop_waiting(struct cm *cm, struct conv *c);
/* It counts neither for a backlog nor as half open any more. */
void conv_settle(struct cm *cm, struct conv *c);
uint32_t conv_hash(const struct cm *cm, const void *data, size_t bytes,
		   uint64_t more);

/* cm.c */
/*
 * Who answers there; one of just this address comes before one of any.  is_own:
 * to a conversation of the same manager.
 */
struct conv_listener *cm_listener_at(struct cm *cm, uint64_t service_id,
				     const uint8_t ip[16], bool is_own);
/* As long as somebody is expected to listen there again; 0: nobody is. */
uint64_t cm_expected_until(const struct cm *cm, uint64_t service_id,
			   const uint8_t ip[16]);

/* request.c */
/* A REQ or SIDR_REQ; mad: the same, as it came. */
void request_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		struct cmmsg *m, const uint8_t *mad, uint64_t now_ns);
/* One in HELD has waited long enough, or was woken. */
void request_due(struct cm *cm, struct conv *c, uint64_t now_ns);
/* A listener has room: for the first that waits for it. */
void request_wake_one(struct cm *cm, uint32_t listener);
/* A listener has come: for all that waited for one like it. */
void request_wake_served(struct cm *cm);
/* A listener has gone: for all that waited for it. */
void request_wake_left(struct cm *cm, uint32_t listener);
/* A sender has one fewer that is half open: looks again at the first of that
 * sender's that waits. */
void request_wake_sender(struct cm *cm, uint16_t sender);
/* It has left the queue of those in HELD. */
void request_unhold(struct cm *cm, struct conv *c);

/* step.c: the table.  False: the cell is empty. */
bool step_run(struct cm *cm, struct conv *c, enum conv_input input,
	      struct cmmsg *msg, uint64_t now_ns);
/* Sends msg now and keeps it for retries. */
void step_send(struct cm *cm, struct conv *c, struct cmmsg *msg);
/* Only kept for retries. */
void step_keep(struct conv *c, struct cmmsg *msg);
/* What was sent last, once more. */
void step_again(struct cm *cm, struct conv *c);
/* For as long as a state lasts that ends by itself. */
void step_linger(struct cm *cm, struct conv *c, uint64_t now_ns);
/* A message that belongs to no conversation. */
void step_send_bare(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		    const struct cmmsg *msg);
void step_emit(struct cm *cm, const struct conv *c, enum cm_event_type type,
	       const struct cmmsg *msg);
/* Arm the retries of a request that was just sent. */
void step_arm(struct cm *cm, struct conv *c, uint8_t timeout, uint8_t tries,
	      uint64_t now_ns);

#endif
