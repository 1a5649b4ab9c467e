/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data and functions that the files of cm/ share: the conversation, the
 * manager, and the functions by which messages, commands and timers run a step
 * of the state table.  Not for users of cm.h.  One thread at a time calls these
 * functions, as with the functions of cm.h.
 */
#ifndef CM_CONV_H
#define CM_CONV_H

#include "cm/cm.h"
#include "util/list.h"
#include "util/rng.h"
#include "util/wheel.h"

#define CONV_RING    64	  /* entries of each ring of struct conv_output */
#define CONV_BUCKETS 4096 /* buckets of each table; a power of two */

/* The states of IBTA 12.9.7 and, for SIDR, of IBTA 12.11.1.  CONV_REQ_WAIT and
 * CONV_REP_WAIT are the states IB_CM_MRA_REQ_RCVD and IB_CM_MRA_REP_RCVD of the
 * Linux kernel's CM. */
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
	/* A REJ or SIDR_REP was sent.  For 8.6 s (ANSWERED_EXP in step.c), it
	 * is sent again when the peer repeats its message. */
	CONV_ANSWERED,
	/* The conversation is over, but the consumer has not released it. */
	CONV_CLOSED,
	/* New states are added at the end, since the notes of older brokers
	 * have the numbers of the states above. */
	CONV_DREQ_RCVD, /* a DREQ has come; the consumer has not answered it */
	CONV_HELD,	/* a request waits for a listener or room (request.c) */
	CONV_STATES
};

enum conv_input {
	/* Messages, in the order of their attribute ids. */
	IN_REQ, /* a repetition: the first REQ makes the conversation */
	IN_MRA,
	IN_REJ,
	IN_REP,
	IN_RTU,
	IN_DREQ,
	IN_DREP,
	IN_SIDR_REQ, /* a repetition: the first one makes the conversation */
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
	/* The peer has lost this connection: its queue pair is in another
	 * connection now, or in none. */
	IN_STALE,
	CONV_INPUTS
};

/* How a conversation repeats its last message until an answer comes. */
struct conv_retry {
	/* In CONV_HELD: the time until which the request is held. */
	uint64_t held_until_ns;
	/* The exponent n of a wait of 4.096 us * 2^n. */
	uint8_t timeout_exponent;
	/* left: how often `last` may still be sent again; in CONV_HELD, 1 if
	 * the request was woken, else 0.  count: how many tries were used up.
	 */
	uint8_t left, count;
	/* How often each message may be sent again: max_cm_retries of the REQ
	 * or SIDR_REQ. */
	uint8_t given;
	/* The conversation has ended because no try of a REQ, REP or DREQ was
	 * answered, and no DREQ or DREP of the peer has come since. */
	bool is_unanswered;
	/* Our last message, which is sent again on a retry or when the peer
	 * repeats its own message.  Until the consumer answers the peer's
	 * request, `last` holds that request instead. */
	uint8_t last[MAD_BYTES];
};

struct conv {
	/* Links in the tables local, remote and qpn of struct cm. */
	struct list by_local, by_remote, by_qpn;
	/* Link in the list `held` or `answered` of struct conv_waiting. */
	struct list queue;
	/* A wait for the peer, the end of TIMEWAIT or ANSWERED, or in HELD the
	 * end of the hold. */
	struct wheel_timer timer;
	enum conv_state state;
	/* No events are made, because the consumer has released the
	 * conversation or, in CONV_HELD, no consumer has it yet. */
	bool is_released;
	bool is_passive; /* the peer has begun the conversation */
	bool is_strict;	 /* cm_start.strict */
	/* The consumer may have invented the note from which the conversation
	 * was resumed.  So the conversation is not in the table qpn. */
	bool is_unproven;
	/* The request counts for the backlog of its listener. */
	bool is_waiting;
	/* The request counts in half_open[]. */
	bool is_half_open;
	/* The index by which half_open[] and held_of[] count a request
	 * (conv_sender). */
	uint16_t sender;
	uint32_t local_id, remote_id; /* remote_id 0: not known yet */
	uint32_t remote_qpn;	      /* 0: none, or not known yet */
	/* The listener that has the request, or for which the request waits: an
	 * index of cm's listener[], or CONV_NO_LISTENER.  Not used if
	 * is_passive is false. */
	uint32_t listener;
	/* The owner for which the conversation counts; NULL: none. */
	struct cm_owner *owner;
	uint64_t user;		     /* cm_event.user of its events */
	uint64_t transaction_id;     /* of its MADs */
	uint8_t local[16], peer[16]; /* the addresses of the two ends */
	struct cm_way way;	     /* of its MADs */
	/* When the last CM_STALE event was made; 0: there was none. */
	uint64_t doubted_ns;
	struct conv_retry retry;
};

/* A listener (cm_listen). */
struct conv_listener {
	struct list link; /* in the table `service` of struct cm */
	bool is_used;	  /* false: this entry of listener[] is free */
	/* The listener and its requests count for this owner; NULL: none. */
	struct cm_owner *owner;
	/* user: cm_event.user of its CM_REQUEST events. */
	uint64_t service_id, user;
	struct cm_where where; /* the addresses at which it answers */
	/* backlog: how many requests may wait for cm_taken or an answer.
	 * waiting: how many requests wait now. */
	uint32_t backlog, waiting;
};

#define CONV_LISTENERS	  4096 /* most listeners of a manager */
#define CONV_NO_LISTENER  UINT32_MAX
#define CONV_RECENT	  64   /* ended listeners that are remembered */
#define CONV_ANSWERED_MAX 4096 /* most conversations in ANSWERED */

/* The conversation whose link `queue` is the node. */
#define CONV_QUEUED(node)                                                      \
	((struct conv *)(void *)((char *)(node)-offsetof(struct conv, queue)))

/* A listener that has ended.  Up to the time until_ns, the manager expects the
 * program to make this listener again.  until_ns is 0 in an entry that was
 * never used. */
struct conv_recent {
	uint64_t service_id, until_ns;
	uint64_t owner;	       /* the owner's number; 0: no owner */
	struct cm_where where; /* the addresses at which it answered */
};

/* Two lists of conversations with their counts. */
struct conv_waiting {
	/* Conversations in HELD, and those in ANSWERED; the oldest first. */
	struct list held, answered;
	uint32_t held_count, answered_count;
	/* Held requests of each sender, by conv_sender. */
	uint16_t held_of[CONV_BUCKETS];
};

/* Messages and events that the caller has yet to take. */
struct conv_output {
	struct cm_frame tx[CONV_RING];
	struct cm_event event[CONV_RING];
	/* The index of the first entry and the number of entries of each ring.
	 */
	uint32_t tx_head, tx_count, event_head, event_count;
};

/* A manager. */
struct cm {
	struct rng rng;	   /* the source of ids */
	uint64_t hash_key; /* see bucket_of */
	/* cm_config.conversations and cm_config.half_open. */
	uint32_t limit, half_open_limit;
	/* Numbers of entries of conv[].  used: in use now.  free_count: in
	 * free_list.  fresh: used at least once. */
	uint32_t used, free_count, fresh;
	struct conv *conv;   /* `limit` entries, owned */
	uint32_t *free_list; /* indices of conv[] that are free again; owned */
	struct conv_listener *listener; /* CONV_LISTENERS entries, owned */
	uint32_t listeners;		/* how many of listener[] are in use */
	struct conv_recent recent[CONV_RECENT]; /* see cm_unlisten */
	uint64_t expecting_until_ns;		/* see cm_expect_listeners */
	/* Hash tables: of conversations by their own id, by the peer's address
	 * and id, by the peer's address and QPN; of listeners by service id. */
	struct list local[CONV_BUCKETS], remote[CONV_BUCKETS],
		qpn[CONV_BUCKETS], service[CONV_BUCKETS];
	/* Unanswered requests of each sender, by conv_sender. */
	uint16_t half_open[CONV_BUCKETS];
	struct conv_waiting waiting;
	struct wheel wheel; /* the timers of all conversations */
	struct conv_output out;
	/* The way by which a message came: the message that cm_rx handles, or
	 * the held request that request_due handles. */
	struct cm_way rx_way;
	struct cm_counters counters;
};

/* bucket.c */
/* Returns a hash, below CONV_BUCKETS, of the `bytes` bytes of data and of the
 * number `more`. */
uint32_t bucket_of(const struct cm *cm, const void *data, size_t bytes,
		   uint64_t more);

/* conv.c */
/*
 * Makes a conversation in CONV_FREE, which counts for the owner (NULL: none);
 * the caller fills in the conversation and then calls conv_enter.  Its id is
 * local_id, or a random one if local_id is 0 or in use.  Returns 0 with *made;
 * -EDQUOT: the owner has its share of conversations; -ENOMEM: no conversation
 * is free.
 */
int conv_new(struct cm *cm, struct cm_owner *owner, uint32_t local_id,
	     struct conv **made);
/* May the owner have one more conversation?  Returns 0; -EDQUOT: the owner has
 * its share; -ENOMEM: no conversation is free. */
int conv_may_own(const struct cm *cm, const struct cm_owner *owner);
/* Counts the conversation for another owner from now on; NULL: for none. */
void conv_set_owner(struct conv *c, struct cm_owner *owner);
/* Frees a conversation in any state; it no longer counts for its owner. */
void conv_free(struct cm *cm, struct conv *c);
/* Finds a conversation by its own id; NULL: there is none. */
struct conv *conv_find(struct cm *cm, uint32_t local_id);
/* Finds a conversation with the peer by the peer's id; NULL: there is none. */
struct conv *conv_find_remote(struct cm *cm, const uint8_t peer[16],
			      uint32_t remote_id);
/*
 * Finds a live connection with the peer's queue pair `qpn`; NULL: there is
 * none.  sender NULL: finds any such connection.  Otherwise sender is the
 * conversation of this manager that has sent a REQ with that queue pair.  Then
 * the function finds a connection only if both of its ends are conversations of
 * this manager and the peer's end has the same owner as sender: the REQ of one
 * owner proves nothing about the queue pair of another owner.  Nothing is found
 * if that owner stands for several users (cm_owner.is_many).
 */
struct conv *conv_find_qpn(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
			   const struct conv *sender);
/* Does the peer's manager have the other end of a connection?  See cm_has_peer,
 * which calls this. */
bool conv_has_peer(struct cm *cm, struct cm *peers, const uint8_t peer[16],
		   uint32_t qpn);
/* Has a connection of the owner with the peer's queue pair `qpn` ended lately?
 * See cm_has_ended, which calls this. */
bool conv_has_ended(struct cm *cm, const struct cm_owner *owner,
		    const uint8_t peer[16], uint32_t qpn);
/* Sets the peer's id, and adds the conversation to the table `remote` by
 * c->peer, which the caller has set. */
void conv_set_remote(struct cm *cm, struct conv *c, uint32_t remote_id);
/* Sets the peer's QPN, and adds the conversation to the table `qpn` by c->peer,
 * unless qpn is 0 or the conversation is unproven. */
void conv_set_qpn(struct cm *cm, struct conv *c, uint32_t qpn);
/*
 * Returns the index in half_open[] and held_of[] by which a request is counted.
 * If a conversation of this manager (active) has sent the request and has an
 * owner, the index is that owner's.  Otherwise the index is that of the address
 * from which the request came (peer).
 */
uint16_t conv_sender(const struct cm *cm, const struct conv *active,
		     const uint8_t peer[16]);
/* May the request's sender have one more unanswered request?  False: it has
 * half_open_limit of them. */
bool conv_may_open_half(const struct cm *cm, const struct conv *c);
/* Counts the request as unanswered (half open), until conv_settle. */
void conv_open_half(struct cm *cm, struct conv *c);
/* Changes the state of a conversation; only this function and conv_free change
 * it.  A released conversation that enters CLOSED is freed. */
void conv_enter(struct cm *cm, struct conv *c, enum conv_state state);
/* The request no longer counts for its listener's backlog.  Wakes a held
 * request that can have the free place. */
void conv_stop_waiting(struct cm *cm, struct conv *c);
/* The request no longer counts for its listener's backlog, nor as half open.
 * Wakes the held requests that can have the free places. */
void conv_settle(struct cm *cm, struct conv *c);

/* listener.c */
/* Adds a listener to the table `service`. */
void listener_enter(struct cm *cm, struct conv_listener *l);
/* See cm_is_served, which calls this. */
bool listener_serves(const struct cm *cm, uint64_t service_id,
		     const struct cm_where *where);
/* Remembers a listener that ends, as cm_unlisten says. */
void listener_remember(struct cm *cm, const struct conv_listener *l,
		       uint64_t until_ns);
/*
 * Finds the listener that answers the REQ or SIDR_REQ m, which has come to the
 * address `to`.  A listener at this one address is preferred to a listener at
 * any address.  is_own: a conversation of this manager has sent the request.
 * NULL: there is no such listener.
 */
struct conv_listener *listener_at(struct cm *cm, const struct cmmsg *m,
				  const uint8_t to[16], bool is_own);
/* Returns the absolute time, in ns, until which a listener for the request m to
 * the address `to` is expected to be made; 0 or a past time: none is expected.
 */
uint64_t listener_expected_until(const struct cm *cm, const struct cmmsg *m,
				 const uint8_t to[16]);

/* request.c */
/* Handles a REQ or SIDR_REQ that has come: m is the parsed message, mad its
 * bytes. */
void request_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		struct cmmsg *m, const uint8_t *mad, uint64_t now_ns);
/* Handles the timer of a conversation in HELD: the request has waited long
 * enough, or one of the functions request_wake_* has woken it. */
void request_due(struct cm *cm, struct conv *c, uint64_t now_ns);
/* The listener has room: wakes the first held request that waits for it and
 * whose sender may have one more half-open request. */
void request_wake_one(struct cm *cm, uint32_t listener);
/* A listener was made: wakes the held requests that found no listener and find
 * one now. */
void request_wake_served(struct cm *cm);
/* The listener has ended: wakes the held requests that wait for it. */
void request_wake_left(struct cm *cm, uint32_t listener);
/* The sender has one half-open request fewer: wakes the first held request of
 * that sender whose listener has room. */
void request_wake_sender(struct cm *cm, uint16_t sender);
/* The conversation has left the list `held`: decrements the counts of held
 * requests.  If the request was woken, wakes the next ones that can be served.
 */
void request_unhold(struct cm *cm, struct conv *c);

/* step.c */
/* Runs the table's cell for the conversation's state and this input; false: the
 * cell is empty.  The call may free the conversation.  msg is the message that
 * has come, or the message of the consumer's command, into which the call
 * writes the ids and the kind; NULL: the input has no message. */
bool step_run(struct cm *cm, struct conv *c, enum conv_input input,
	      struct cmmsg *msg, uint64_t now_ns);
/* Writes the conversation's ids into msg, sends msg, and keeps it for retries.
 */
void step_send(struct cm *cm, struct conv *c, struct cmmsg *msg);
/* Writes the conversation's ids into msg, and keeps it for retries. */
void step_keep(struct conv *c, struct cmmsg *msg);
/* Sends the message that step_keep or step_send has kept. */
void step_again(struct cm *cm, struct conv *c);
/* Arms the timer that ends the state TIMEWAIT or ANSWERED.  Does nothing in
 * another state. */
void step_linger(struct cm *cm, struct conv *c, uint64_t now_ns);
/* Sends a message that belongs to no conversation, with the interface, P_Key
 * and SL of cm->rx_way. */
void step_send_bare(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
		    const struct cmmsg *msg);
/* Makes an event, unless the conversation is released.  msg NULL: the event has
 * no message. */
void step_emit(struct cm *cm, const struct conv *c, enum cm_event_type type,
	       const struct cmmsg *msg);
/* Arms the timer of a message that was just sent, which is sent again up to
 * `tries` times.  The wait before each retry is 4.096 us * 2^timeout, where a
 * timeout above 24 counts as 24.  Unless the conversation is_strict, the first
 * waits are shorter. */
void step_arm(struct cm *cm, struct conv *c, uint8_t timeout, uint8_t tries,
	      uint64_t now_ns);

#endif
