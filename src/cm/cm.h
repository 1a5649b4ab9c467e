/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The communication manager (IBTA Vol 1, chapter 12): conversations that make
 * and end connections (REQ, REP, RTU, DREQ, DREP, with REJ and MRA) and that
 * resolve services (SIDR).
 *
 *	in	cm_rx, cm_tick, the commands
 *	out	cm_tx, cm_event, cm_deadline
 *
 * Sans-IO: no socket, clock or thread, and no callback.  Messages and events
 * wait in rings of fixed size: the caller empties both rings after each call,
 * since a call that finds a ring full aborts.  One thread at a time calls these
 * functions; there is no lock.  Malformed and unexpected messages are counted.
 *
 * A conversation is named by its communication id, a random number that its
 * messages have.  A conversation begins with a REQ or SIDR_REQ of the peer, or
 * with a call of cm_connect, cm_note_resume or cm_note_release.  A conversation
 * ends when its consumer has released it, its last wait for the peer is over,
 * and its TIMEWAIT, if any, is over.  The consumer is the program that the
 * caller acts for.
 *
 * A time is absolute, in ns of one monotonic clock that the caller chooses.  An
 * address is an IPv6 address, or an IPv4 address mapped into IPv6.
 */
#ifndef CM_CM_H
#define CM_CM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hdr/cmmsg.h"
#include "hdr/mad.h"

struct cm;

struct cm_config {
	/* Seeds the random ids (see cm_seed) and the key of the hash tables. */
	uint64_t seed;
	uint32_t conversations; /* the most that exist at a time */
	/* The most unanswered requests of one sender.  If a conversation of
	 * this manager has sent a request, and has an owner (struct cm_owner),
	 * the sender is that owner.  Otherwise the sender is the address from
	 * which the request came.  Senders with the same hash share one
	 * limit. */
	uint32_t half_open;
};

enum cm_event_type {
	/* A REQ or SIDR_REQ (msg) has come to a listener.  The event's user is
	 * that of the listener. */
	CM_REQUEST,
	/* A REP (msg) has come; the consumer answers by cm_establish or
	 * cm_reject. */
	CM_RESPONSE,
	/* On the passive side, the connection is established: the RTU (msg) has
	 * come, or the consumer has called cm_establish before the RTU came (no
	 * msg).  The active side gets no such event. */
	CM_ESTABLISHED,
	/* The peer has refused our REQ or REP, or withdrawn its own REQ or REP,
	 * by a REJ (msg).  If the peer has ended the connection by a DREQ
	 * before the active side has established it, msg is a REJ that this
	 * manager has made.  No msg: before the consumer answered the peer's
	 * REQ or REP, the manager has learned that the peer's queue pair is now
	 * in another connection, or in none (cm_stale). */
	CM_REJECTED,
	/* The peer has not answered the REQ, REP or SIDR_REQ in time. */
	CM_UNREACHABLE,
	/* The connection ends.  msg is a DREQ: the consumer answers by
	 * cm_disconnect or cm_release.  msg is a DREP or REJ: the peer knows
	 * that the connection has ended.  No msg: the peer did not answer our
	 * DREQ. */
	CM_DISCONNECTED,
	/* The conversation's TIMEWAIT is over. */
	CM_TIMEWAIT_EXIT,
	/* A SIDR_REP (msg) of any status has come. */
	CM_RESOLVED,
	/* The peer's host has sent a REQ (msg) with the queue pair that is the
	 * peer's end of this connection.  The caller asks that host, and calls
	 * cm_stale unless the host answers that the queue pair is still in use.
	 */
	CM_STALE,
};

struct cm_event {
	enum cm_event_type type;
	uint32_t id;   /* the conversation's id */
	uint64_t user; /* the number that the caller gave, see cm_set_user */
	uint8_t local[16], peer[16]; /* the addresses of the two ends */
	uint32_t scope;	  /* that of the conversation's MADs (cm_way) */
	struct cmmsg msg; /* kind 0: none */
};

/* The interface, P_Key and SL of a MAD, in addition to its two addresses.  The
 * caller of cm_rx passes those of the MAD that has come.  All MADs of a
 * conversation that a peer has begun have those of the peer's request, unless
 * the conversation was resumed (cm_note_resume).  An answer that belongs to no
 * conversation has those of the MAD that it answers. */
struct cm_way {
	uint32_t scope; /* interface of link-local addresses; 0: any */
	uint16_t pkey;	/* InfiniBand: the P_Key; 0: the default one */
	uint8_t sl;	/* InfiniBand: the service level */
};

/* One MAD from QP1 of `from` to QP1 of `to`. */
struct cm_frame {
	uint8_t from[16], to[16];
	struct cm_way way;
	/* The number of the owner whose conversation sends the MAD; 0: none. */
	uint64_t owner;
	uint8_t mad[MAD_BYTES];
};

/*
 * The manager's counters.  Messages:
 *	rx		received
 *	tx		sent, repetitions included
 *	malformed	received, but not parsed, or without any id
 *	unexpected	received: APRs, and messages for no conversation or for
 *			a conversation whose state does not expect them
 *	duplicates	repetitions of a REQ or SIDR_REQ, and of a DREQ that the
 *			consumer has not answered
 *	retries		sent again, since no answer came in time
 *
 * Requests (REQ, SIDR_REQ):
 *	no_listener	refused, since there is no listener
 *	backlog_full	held or dropped, since the backlog was full, the sender
 *			had too many requests, or no conversation was free
 *	refused		refused by the manager before a listener got the request
 *	stale		refused, since the queue pair of the REQ is connected
 *			with us, or the conversation of the REQ is in TIMEWAIT
 *	held		held for a listener, for room at a listener, or until
 *			the sender has fewer unanswered requests
 */
struct cm_counters {
	uint64_t rx, tx, malformed, unexpected, duplicates, retries;
	uint64_t no_listener, backlog_full, refused, stale, held;
};

/* The local addresses at which a listener answers. */
struct cm_where {
	uint8_t ip[16];	     /* the one address; unused with any_v4 or any_v6 */
	bool any_v4, any_v6; /* every IPv4 address; every IPv6 address */
	bool only_own; /* only requests from conversations of this manager */
	/* InfiniBand: the addresses are IP addresses.  A request is for the
	 * destination address in the header of RDMA IP CM (struct cmmsg_ip) in
	 * its private data.  The listener does not answer requests without such
	 * a header. */
	bool by_header;
};

/*
 * The state of a conversation, which the consumer keeps.  When this manager is
 * gone, another manager continues the conversation from the note.
 */
struct cm_note {
	/* local_id and remote_id: the ids of this end and of the peer.
	 * remote_qpn: the peer's QPN.  An id or a QPN that is not known yet is
	 * 0.  scope: the index of the interface, if the addresses are
	 * link-local; 0: any. */
	uint32_t local_id, remote_id, remote_qpn, scope;
	uint64_t transaction_id;     /* that of its MADs */
	uint8_t local[16], peer[16]; /* the addresses of the two ends */
	uint8_t state; /* an enum conv_state; 0: there is nothing to continue */
	/* is_passive: the peer has begun the conversation.  is_strict: each
	 * wait for an answer has the full length (cm_start.strict).  timeout:
	 * the full length of a wait is 4.096 us * 2^timeout.  tries: how often
	 * each message is sent again, at most. */
	uint8_t is_passive, is_strict, timeout, tries;
	/* Our last message, which is sent again on a retry or when the peer
	 * repeats its own message.  Until the consumer answers the peer's
	 * request, this holds that request instead. */
	uint8_t last[MAD_BYTES];
	/* The consumer may have invented the note.  So the conversation is
	 * found by its ids alone, and not by the peer's queue pair
	 * (cm_has_ended, CM_STALE). */
	uint8_t is_unproven;
	/* The connection has ended, but the peer has not said so
	 * (cm_has_ended). */
	uint8_t is_unanswered;
	uint8_t reserved; /* 0 */
};

/*
 * One of the users that share a manager.  The manager counts an owner's
 * listeners and conversations.  The caller keeps the structure until both
 * counts are 0.  A function that takes an owner also takes NULL: then nothing
 * is counted, and no share limits the call.
 */
struct cm_owner {
	/* No share limits this owner: it may take whatever is free. */
	bool is_exempt;
	/* This owner stands for several users that cannot be told apart.  So a
	 * REQ from one of its conversations proves nothing about the queue
	 * pairs of its other conversations, and ends no connection of theirs.
	 */
	bool is_many;
	/* Names the owner: not 0, and no other owner's number. */
	uint64_t number;
	/* Listeners that the owner has now. */
	uint32_t listeners;
	/* Conversations that the owner has now, including those that are
	 * released but have not ended on the wire. */
	uint32_t conversations;
};

/*
 * May an owner that holds `has` entries of a table take one of the table's
 * `left` free entries?  An owner may take an entry if it holds fewer entries
 * than are free, so that no owner takes all of them.  An exempt owner, and
 * NULL, may take any free entry.  Returns 0; -EDQUOT: the owner has its share;
 * -ENOMEM: no entry is free.
 */
static inline int cm_owner_may_add(const struct cm_owner *owner, uint32_t has,
				   uint32_t left)
{
	if (!left)
		return -ENOMEM;
	return !owner || owner->is_exempt || has < left ? 0 : -EDQUOT;
}

/* The arguments of cm_connect. */
struct cm_start {
	struct cm_owner *owner; /* for which the conversation counts */
	uint64_t user;		/* cm_event.user of its events */
	/* The wanted id of the conversation; the manager draws another if this
	 * is 0 or in use.  A caller that repeats a call at another manager
	 * gives the same id. */
	uint32_t id;
	/* The wanted transaction id; 0: the manager draws one. */
	uint64_t transaction_id;
	/* The addresses of the two ends: IPv6, or IPv4 mapped into IPv6. */
	uint8_t local[16], peer[16];
	/* The index of the interface, if the addresses are link-local; 0: any.
	 */
	uint32_t scope;
	/* A REQ or SIDR_REQ.  The manager writes the message's ids and GIDs.
	 * If both LIDs are 0, the manager sets them to 0xffff, since a RoCE
	 * port has no LID.  All MADs of the conversation have the P_Key of
	 * msg.qp and the SL of msg.primary.  If no answer comes within the
	 * message's own remote_timeout, of which at most 69 s count, the
	 * manager repeats the message, at most max_cm_retries times. */
	struct cmmsg msg;
	/* True: each wait for an answer is remote_timeout.  An MRA of the peer
	 * adds its own time to the wait, but adds no tries.  If this manager is
	 * also the peer's manager, and msg finds no listener there, msg is
	 * refused at once, unless a listener is expected (cm_unlisten,
	 * cm_expect_listeners).  False: the first waits are shorter; an MRA of
	 * the peer renews the tries; a message is not repeated if the peer's
	 * end is a conversation of this same manager that has received the
	 * message; and a request that finds no listener is held for CM_HOLD_NS
	 * before it is refused. */
	bool strict;
};

/* Makes a manager, which the caller frees by cm_free.  NULL: out of memory. */
struct cm *cm_new(const struct cm_config *config, uint64_t now_ns);
/* Frees the manager with all conversations and listeners.  No peer is told, and
 * no owner's counts change. */
void cm_free(struct cm *cm);
/*
 * Mixes entropy into the source of random ids.  The caller calls it before each
 * call that may draw an id, so that nobody can guess the id.
 */
void cm_seed(struct cm *cm, uint64_t entropy);
/* Returns the counters, which stay the manager's. */
const struct cm_counters *cm_counters(const struct cm *cm);
/* Returns the number of conversations, in any state. */
uint32_t cm_count(const struct cm *cm);

/* How long a request that finds no listener is held before it is refused. */
#define CM_HOLD_NS 100000000u

/*
 * Makes a listener, which answers requests for a service at the addresses of
 * `where`.  The listener, and each conversation that begins with a request to
 * it, counts for the owner.  The listener's CM_REQUEST events have `user`.
 * `backlog` is how many requests may wait for cm_taken or for an answer of the
 * consumer; further requests are held until one of the waiting requests is
 * taken or answered, and are dropped if they get no room in time (request.c).
 * Returns 0 with the listener's number in *listener, which the caller ends by
 * cm_unlisten; -EDQUOT: the owner has its share of listeners; -ENOMEM: no
 * listener is free.
 */
int cm_listen(struct cm *cm, struct cm_owner *owner, uint64_t user,
	      uint64_t service_id, const struct cm_where *where,
	      uint32_t backlog, uint32_t *listener);
/* Does a listener answer requests for the service at one of the addresses of
 * `where`?  any_v4 or any_v6, of the listener or of `where`, stands here for
 * all addresses of both families. */
bool cm_is_served(const struct cm *cm, uint64_t service_id,
		  const struct cm_where *where);
/*
 * Ends a listener.  Until until_ns, each request that finds no listener, and
 * that this listener would have answered, is held, since some programs
 * (perftest) listen, serve one connection and listen again.  Later such a
 * request is held as any other (cm_start.strict).  The manager remembers a
 * limited number of ended listeners.  When no place is left, it chooses the
 * owner with the most remembered listeners, and forgets that owner's listener
 * with the earliest until_ns.  until_ns 0: the manager does not remember this
 * listener.
 */
void cm_unlisten(struct cm *cm, uint32_t listener, uint64_t until_ns);

/*
 * Until until_ns, the manager holds each request that finds no listener, and
 * does not answer a message of an unknown conversation, except that it refuses
 * a LAP.  A broker whose predecessor was killed calls this, since the programs
 * are about to register their listeners and conversations again.
 */
void cm_expect_listeners(struct cm *cm, uint64_t until_ns);

/*
 * Begins a conversation: sends a REQ or SIDR_REQ.  Returns 0 with the
 * conversation's *id, which the caller releases by cm_release; -EDQUOT: the
 * owner has its share of conversations; -ENOMEM: no conversation is free.
 */
int cm_connect(struct cm *cm, const struct cm_start *start, uint64_t now_ns,
	       uint32_t *id);
/* Writes a note of the conversation as it is now.  The note's state is 0 if the
 * conversation does not exist, is over or is released, or if the consumer's
 * last answer was a REJ or a SIDR_REP. */
void cm_note_make(struct cm *cm, uint32_t id, struct cm_note *note);
/*
 * Begins a conversation in the state of the note.  The conversation counts for
 * the owner, its events have `user`, and its MADs have P_Key 0 and SL 0, which
 * a note does not keep.  The note may have any contents: it is checked.
 * Returns 0 with *id, which is the note's local_id; -EINVAL: no conversation
 * can continue from this note; -EEXIST: a conversation with the note's local_id
 * exists already, or one with the note's peer and remote_id that is not
 * released; -EDQUOT: the owner has its share of conversations; -ENOMEM: no
 * conversation is free.
 */
int cm_note_resume(struct cm *cm, struct cm_owner *owner, uint64_t user,
		   const struct cm_note *note, uint64_t now_ns, uint32_t *id);
/*
 * Tells the peer of the note's conversation that the conversation is released.
 * If the manager that wrote the note has already told the peer, the repetition
 * does no harm.  The conversation counts for the owner until it ends.  Does
 * nothing where cm_note_resume would return an error.
 */
void cm_note_release(struct cm *cm, struct cm_owner *owner,
		     const struct cm_note *note, uint64_t now_ns);
/*
 * Has the peer ended a connection of the owner with the peer's queue pair `qpn`
 * lately?  An ended connection counts until its TIMEWAIT is over.  True if the
 * peer has sent a DREQ or REJ, or has answered the owner's DREQ by a DREP.
 * False if the peer has not answered, or if the owner has a new connection with
 * the queue pair.  owner NULL: a connection that counts for no owner.
 */
bool cm_has_ended(struct cm *cm, const struct cm_owner *owner,
		  const uint8_t peer[16], uint32_t qpn);
/*
 * Does `peers`, the manager of the peer's host, have the other end of our
 * connection with the peer's queue pair `qpn`, and has the connection not ended
 * there?  A caller that has both managers calls this after CM_STALE.
 */
bool cm_has_peer(struct cm *cm, struct cm *peers, const uint8_t peer[16],
		 uint32_t qpn);
/*
 * Ends our connection with the peer's queue pair `qpn`, if there is one, since
 * the peer has lost that connection (IBTA 12.9.8.3.1).
 */
void cm_stale(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
	      uint64_t now_ns);
/* The consumer has seen the request, which no longer counts for the backlog.
 * Does nothing if there is no such conversation. */
void cm_taken(struct cm *cm, uint32_t id);
/* Sets the number that is cm_event.user in the conversation's events.  Before
 * this call, that number is the `user` of cm_connect, of cm_note_resume or of
 * the listener.  Does nothing if there is no such conversation. */
void cm_set_user(struct cm *cm, uint32_t id, uint64_t user);
/*
 * Accepts a request: answers a REQ by a REP, and a SIDR_REQ by a SIDR_REP, with
 * the fields of reply.  A REP that the peer does not answer is sent again, as
 * many times at most as the REQ's max_cm_retries says.  The manager writes the
 * ids, and the failover field of a REP if the REQ has no alternate path.
 * Returns 0; -EINVAL: the conversation's state has no request to accept;
 * -ENOENT: there is no such conversation.
 */
int cm_accept(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns);
/*
 * Rejects a REQ or REP by a REJ, and a SIDR_REQ by a SIDR_REP, with the reason
 * (or status), the additional information and the private data of reply.
 * Returns 0; -EINVAL: the conversation's state has nothing to reject; -ENOENT:
 * there is no such conversation.
 */
int cm_reject(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns);
/*
 * On the active side, sends the RTU.  On the passive side, establishes the
 * connection since data came before the RTU (IBTA 12.9.7.2).  Returns 0;
 * -EINVAL: no REP has come or was sent, or the connection has ended; -ENOENT:
 * there is no such conversation.
 */
int cm_establish(struct cm *cm, uint32_t id, uint64_t now_ns);
/*
 * Sends a DREQ, or answers the peer's DREQ by a DREP.  Does nothing before
 * cm_accept on the passive side, before cm_establish on the active side, and
 * after the connection has ended.  Returns 0; -ENOENT: there is no such
 * conversation.
 */
int cm_disconnect(struct cm *cm, uint32_t id, uint64_t now_ns);
/*
 * The consumer forgets the conversation, which makes no more events.  The
 * manager tells the peer: it ends a connection by a DREQ, answers a DREQ by a
 * DREP, withdraws a REQ by a REJ, and rejects a request or REP that the
 * consumer has not answered.  Does nothing if there is no such conversation.
 */
void cm_release(struct cm *cm, uint32_t id, uint64_t now_ns);

/*
 * Handles a MAD of `len` bytes and any contents, which has come from QP1 of
 * `from` to QP1 of `to`.  by->scope is the index of the receiving interface for
 * link-local addresses, else 0.
 */
void cm_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
	   const struct cm_way *by, const uint8_t *mad, size_t len,
	   uint64_t now_ns);
/* Expires timers that are due.  One call expires only a few, so that the rings
 * have room.  If timers that are due are left, cm_deadline returns a time that
 * has passed. */
void cm_tick(struct cm *cm, uint64_t now_ns);
/* Removes the first message from the ring of messages to send, and stores it in
 * *frame; false: there is none. */
bool cm_tx(struct cm *cm, struct cm_frame *frame);
/* Removes the first event from the ring of events, and stores it in *event;
 * false: there is none. */
bool cm_event(struct cm *cm, struct cm_event *event);
/* Returns the absolute time, in ns, at which cm_tick is needed next;
 * UINT64_MAX: no timer is armed. */
uint64_t cm_deadline(const struct cm *cm);

#endif
