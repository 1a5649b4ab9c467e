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
 * wait in rings of fixed size: the caller empties both rings after each call.
 * One thread at a time, no lock.  Malformed and unexpected messages are
 * counted.
 *
 * A communication id, which is random and goes over the wire, names a
 * conversation.  A conversation lasts from its REQ, or from cm_connect, until
 * its consumer has released it and its last state on the wire has timed out.
 * The consumer is the program that the caller acts for.
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
	uint64_t seed;		/* the seed of ids, see cm_seed */
	uint32_t conversations; /* at most */
	/* Unanswered requests at most of one sender: an owner of this manager,
	 * or another manager's address. */
	uint32_t half_open;
};

enum cm_event_type {
	/* A REQ or SIDR_REQ (msg) to the listener whose user the event has. */
	CM_REQUEST,
	/* A REP (msg); cm_establish or cm_reject answers it. */
	CM_RESPONSE,
	/* A RTU (msg), or none if it was lost. */
	CM_ESTABLISHED,
	/* A REJ (msg). */
	CM_REJECTED,
	/* No answer came. */
	CM_UNREACHABLE,
	/* A DREQ (msg), which cm_disconnect or cm_release answers; a DREP or
	 * REJ (msg): the peer knows that the connection has ended; none: the
	 * peer did not answer. */
	CM_DISCONNECTED,
	CM_TIMEWAIT_EXIT,
	/* A SIDR_REP (msg) of any status. */
	CM_RESOLVED,
	/* A REQ (msg) that names the peer's queue pair for another connection:
	 * this one is stale if the peer agrees, see cm_stale. */
	CM_STALE,
};

struct cm_event {
	enum cm_event_type type;
	uint32_t id;   /* the conversation's id */
	uint64_t user; /* the number that cm_connect or cm_set_user gave */
	uint8_t local[16], peer[16];
	struct cmmsg msg; /* kind 0: none */
};

/* One MAD from QP1 of `from` to QP1 of `to`. */
struct cm_frame {
	uint8_t from[16], to[16];
	uint32_t scope; /* interface of link-local addresses; 0: any */
	uint8_t mad[MAD_BYTES];
};

struct cm_counters {
	uint64_t rx, tx, malformed, unexpected, duplicates, retries;
	uint64_t no_listener, backlog_full, refused, stale, held;
};

/* The local addresses at which a listener answers. */
struct cm_where {
	uint8_t ip[16]; /* all zero: see any_v4, any_v6 */
	bool any_v4, any_v6;
	bool only_own; /* answers conversations of this manager alone */
};

/*
 * The state of a conversation, kept by its consumer: another manager continues
 * the conversation by it when this manager is gone.
 */
struct cm_note {
	uint32_t local_id, remote_id, remote_qpn, scope;
	uint64_t transaction_id;
	uint8_t local[16], peer[16];
	uint8_t state; /* 0: there is nothing to continue */
	uint8_t is_passive, is_strict, timeout, tries;
	uint8_t last[MAD_BYTES]; /* the message that a retry repeats */
	/* The consumer may have made the note up: the conversation is found by
	 * its ids alone, not by the peer's queue pair (cm_has_ended, CM_STALE).
	 */
	uint8_t is_unproven;
	uint8_t reserved[2];
};

/*
 * A user, one of several that share a manager, for which listeners and
 * conversations are counted.  The caller keeps it until both counts are 0.  A
 * function that takes an owner takes NULL for one without a limit.
 */
struct cm_owner {
	/* May have all that the manager has. */
	bool is_exempt;
	/* Stands for several users that cannot be told from each other. */
	bool is_many;
	/* Differs from the other owners' numbers; not 0. */
	uint64_t number;
	/* Listeners that the owner has now. */
	uint32_t listeners;
	/* Conversations that the owner has now, with those that are released
	 * and not yet ended on the wire. */
	uint32_t conversations;
};

/*
 * May the owner, which has `has` of something, have one more where `left` are
 * free?  An owner has at most as many as are left for all others, so that no
 * owner takes all.  0; -EDQUOT: the owner has its share; -ENOMEM: none is left.
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
	/* The conversation's id; 0, or one in use: the manager draws one.  A
	 * caller that repeats a call for another manager gives the same id. */
	uint32_t id;
	/* 0: the manager draws one. */
	uint64_t transaction_id;
	uint8_t local[16], peer[16];
	uint32_t scope;
	/* A REQ or SIDR_REQ.  The manager writes the ids, LIDs and GIDs, and
	 * itself keeps to local_timeout and max_cm_retries. */
	struct cmmsg msg;
	/* Each wait is local_timeout; without strict, the first waits are
	 * shorter.  A request of a conversation of this manager for a service
	 * that has no listener here is refused at once. */
	bool strict;
};

/* Makes a manager, which the caller frees by cm_free.  NULL without memory. */
struct cm *cm_new(const struct cm_config *config, uint64_t now_ns);
/* Frees the manager with all conversations and listeners.  No peer is told, and
 * no owner's counts change. */
void cm_free(struct cm *cm);
/*
 * Mixes entropy into the source of ids, which nobody may guess.  The caller
 * does so before each call that may draw an id.
 */
void cm_seed(struct cm *cm, uint64_t entropy);
/* Returns the counters, which stay the manager's. */
const struct cm_counters *cm_counters(const struct cm *cm);
/* Returns the number of conversations, in any state. */
uint32_t cm_count(const struct cm *cm);

/* How long a request is held that finds no listener, before it is refused. */
#define CM_HOLD_NS 100000000u

/*
 * Answers requests for a service.  The listener, and each conversation that
 * begins with a request to it, counts for the owner.  `user` is that of its
 * CM_REQUEST events. backlog: how many requests may wait that no consumer has
 * taken yet; further requests are held until one is taken.  0 with *listener;
 * -EDQUOT: the owner has its share of listeners; -ENOMEM: no listener is left.
 */
int cm_listen(struct cm *cm, struct cm_owner *owner, uint64_t user,
	      uint64_t service_id, const struct cm_where *where,
	      uint32_t backlog, uint32_t *listener);
/*
 * Ends a listener.  Requests for its service are held until until_ns, but at
 * least for CM_HOLD_NS: there are programs that listen, serve one connection
 * and listen again (perftest).  The manager remembers a limited number of
 * listeners that have ended; beyond that, it forgets the oldest listener of the
 * owner that has the most.
 */
void cm_unlisten(struct cm *cm, uint32_t listener, uint64_t until_ns);

/*
 * Until until_ns, the manager refuses no request that finds no listener, and
 * answers no message of a conversation that is not there.  The successor of a
 * broker that was killed calls this, since listeners and conversations come
 * back to it.
 */
void cm_expect_listeners(struct cm *cm, uint64_t until_ns);

/*
 * Begins a conversation by a REQ or SIDR_REQ.  0 with its *id; -EDQUOT: the
 * owner has its share of conversations; -ENOMEM: no conversation is left.
 */
int cm_connect(struct cm *cm, const struct cm_start *start, uint64_t now_ns,
	       uint32_t *id);
/* Describes the conversation as it is now.  The note's state is 0 if there is
 * no such conversation, or it is over or released. */
void cm_note_make(struct cm *cm, uint32_t id, struct cm_note *note);
/*
 * Begins a conversation for the owner in the state that the note tells.
 * Nothing in the note is trusted.  0 with *id, which is the note's local_id;
 * -EINVAL: no such conversation can be; -EEXIST: the conversation is there;
 * -EDQUOT, -ENOMEM as cm_connect.
 */
int cm_note_resume(struct cm *cm, struct cm_owner *owner, uint64_t user,
		   const struct cm_note *note, uint64_t now_ns, uint32_t *id);
/*
 * Tells the peer of the note's conversation that the conversation is released.
 * The manager that wrote the note may have done so before it ended, or not: to
 * tell the peer twice does no harm.  The conversation counts for the owner
 * until the peer has answered, or has not answered in time.
 */
void cm_note_release(struct cm *cm, struct cm_owner *owner,
		     const struct cm_note *note, uint64_t now_ns);
/*
 * Has a connection of the owner with that peer's queue pair ended lately, by
 * the peer's DREQ or with the peer's DREP?  False once the connection's
 * TIMEWAIT is over. owner NULL: a connection that counts for no owner.
 */
bool cm_has_ended(struct cm *cm, const struct cm_owner *owner,
		  const uint8_t peer[16], uint32_t qpn);
/*
 * The peer has said that its queue pair is in no connection with us: ends the
 * connection that there is (IBTA 12.9.8.3.1).
 */
void cm_stale(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
	      uint64_t now_ns);
/* The consumer has seen a request, which no longer counts for the backlog. */
void cm_taken(struct cm *cm, uint32_t id);
/* Sets the number that the conversation's events have. */
void cm_set_user(struct cm *cm, uint32_t id, uint64_t user);
/*
 * Commands to a conversation.  Each returns 0, -EINVAL in a state that has no
 * such command, or -ENOENT if there is no such conversation.
 */
/* Answers a request by a REP or SIDR_REP with the fields of reply; the manager
 * writes the ids. */
int cm_accept(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns);
/* Rejects a request or a REP by a REJ, or a request by a SIDR_REP, with the
 * reason (or status), the additional information and the private data of
 * reply. */
int cm_reject(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns);
/* On the active side, sends the RTU.  On the passive side, says that data came
 * before the RTU (IBTA 12.9.7.2). */
int cm_establish(struct cm *cm, uint32_t id, uint64_t now_ns);
/* Sends a DREQ, or answers the peer's DREQ by a DREP. */
int cm_disconnect(struct cm *cm, uint32_t id, uint64_t now_ns);
/* The consumer forgets the conversation, which makes no more events.  The
 * manager sends the answer that the peer waits for. */
void cm_release(struct cm *cm, uint32_t id, uint64_t now_ns);

/* Handles a MAD of any contents that has come from QP1 of `from` to QP1 of
 * `to`. */
void cm_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
	   uint32_t scope, const uint8_t *mad, size_t len, uint64_t now_ns);
/* Expires timers that are due, as many as the rings have room for. */
void cm_tick(struct cm *cm, uint64_t now_ns);
/* Takes the first message to send out of its ring; false: there is none. */
bool cm_tx(struct cm *cm, struct cm_frame *frame);
/* Takes the first event out of its ring; false: there is none. */
bool cm_event(struct cm *cm, struct cm_event *event);
/* Returns the absolute time of the next cm_tick that is needed; UINT64_MAX:
 * none. */
uint64_t cm_deadline(const struct cm *cm);

#endif
