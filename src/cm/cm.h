/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The communication manager (IBTA Vol 1, chapter 12): conversations that make
 * and end connections (REQ, REP, RTU, DREQ, DREP, with REJ and MRA) and that
 * resolve services (SIDR).
 *
 *	in	cm_rx, cm_tick, the commands
 *	out	cm_tx, cm_event, cm_deadline
 *
 * Sans-IO: no socket, clock or thread, and it never calls back.  Messages and
 * events wait in rings of fixed size: the owner empties both after every call.
 * One owner, no lock.  Malformed or unexpected messages are counted.
 *
 * A conversation is named by its communication id, which is random and goes
 * over the wire.  It lives from its REQ, or cm_connect, until its owner has
 * released it and the wire has forgotten it.
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
	uint64_t seed;		/* see cm_seed */
	uint32_t conversations; /* at most */
	/* unanswered requests at most from one address, or from one owner */
	uint32_t half_open;
};

enum cm_event_type {
	CM_REQUEST,	/* msg: REQ or SIDR_REQ; user: the listener's */
	CM_RESPONSE,	/* msg: REP; cm_establish or cm_reject is due */
	CM_ESTABLISHED, /* msg: RTU, unless it was lost */
	CM_REJECTED,	/* msg: REJ */
	CM_UNREACHABLE, /* nobody answered */
	/* msg: DREQ, and cm_disconnect or cm_release is due, which answers it;
	 * DREP or REJ: the peer has heard of the end; none: it never said so */
	CM_DISCONNECTED,
	CM_TIMEWAIT_EXIT,
	CM_RESOLVED, /* msg: SIDR_REP of any status */
	/* msg: a REQ that names the peer's queue pair for another connection,
	 * so that this one would be stale: cm_stale, when that is true */
	CM_STALE,
};

struct cm_event {
	enum cm_event_type type;
	uint32_t id;   /* of the conversation */
	uint64_t user; /* as cm_connect or cm_set_user left it */
	uint8_t local[16], peer[16];
	struct cmmsg msg; /* kind 0: none */
};

/* One MAD for QP1 of `to`. */
struct cm_frame {
	uint8_t from[16], to[16];
	uint32_t scope; /* interface of link-local addresses, 0: any */
	uint8_t mad[MAD_BYTES];
};

struct cm_counters {
	uint64_t rx, tx, malformed, unexpected, duplicates, retries;
	uint64_t no_listener, backlog_full, refused, stale, held;
};

/* Which local addresses a listener answers at. */
struct cm_where {
	uint8_t ip[16]; /* all zero: see any_v4, any_v6 */
	bool any_v4, any_v6;
	bool only_own; /* and only to conversations of the same manager */
};

/*
 * A conversation as its owner can give it to another manager, when the one
 * that held it is no more.
 */
struct cm_note {
	uint32_t local_id, remote_id, remote_qpn, scope;
	uint64_t transaction_id;
	uint8_t local[16], peer[16];
	uint8_t state; /* 0: there is nothing to take up again */
	uint8_t is_passive, is_strict, timeout, tries;
	uint8_t last[MAD_BYTES]; /* what a retry repeats */
	uint8_t reserved[3];
};

/*
 * One of those who share a manager.  Its caller keeps it until both counts are
 * 0.  A function that takes an owner takes NULL for one that may have all.
 */
struct cm_owner {
	bool is_exempt; /* may have all that the manager has */
	/* Stands for several that cannot be told from each other. */
	bool is_many;
	uint64_t number;    /* differs from other owners'; not 0 */
	uint32_t listeners; /* that it has now */
	/* Conversations that count for it: also one that is released, until the
	 * wire has forgotten it. */
	uint32_t conversations;
};

/*
 * May this owner, which has `has` of something, have one more where `left` are
 * free?  An owner has at most as many as are left for all others, so that no
 * owner takes all.  0, -EDQUOT: it has its share, -ENOMEM: none is left.
 */
static inline int cm_owner_may_add(const struct cm_owner *owner, uint32_t has,
				   uint32_t left)
{
	if (!left)
		return -ENOMEM;
	return !owner || owner->is_exempt || has < left ? 0 : -EDQUOT;
}

/* What the active side starts with. */
struct cm_start {
	struct cm_owner *owner; /* for which the conversation counts */
	uint64_t user;
	/* what to call it, so that the same call again is the same
	 * conversation; 0: chosen here */
	uint32_t id;
	uint64_t transaction_id;
	uint8_t local[16], peer[16];
	uint32_t scope;
	/* kind REQ or SIDR_REQ; ids, LIDs and GIDs are filled in here.  Its
	 * local_timeout and max_cm_retries are ours to keep. */
	struct cmmsg msg;
	/* wait local_timeout each time, not less at first; and hear at once
	 * that nobody listens, as far as that is known here */
	bool strict;
};

/* NULL without memory. */
struct cm *cm_new(const struct cm_config *config, uint64_t now_ns);
void cm_free(struct cm *cm);
/*
 * Mix in entropy from outside, before calls that may choose an id: ids must
 * not be guessed.
 */
void cm_seed(struct cm *cm, uint64_t entropy);
const struct cm_counters *cm_counters(const struct cm *cm);
/* Conversations that are not free. */
uint32_t cm_count(const struct cm *cm);

/* How long a request for a service of nobody is held before it is refused. */
#define CM_HOLD_NS 100000000u

/*
 * Answers requests for a service.  The listener, and each conversation that
 * begins with a request to it, counts for the owner.  backlog: requests that
 * nobody has taken yet, beyond which more are not answered but held until there
 * is room.  0 with *listener; -EDQUOT: the owner has its share of listeners;
 * -ENOMEM: there is none left.
 */
int cm_listen(struct cm *cm, struct cm_owner *owner, uint64_t user,
	      uint64_t service_id, const struct cm_where *where,
	      uint32_t backlog, uint32_t *listener);
/*
 * Who calls this service is held until until_ns, unless it is sooner than
 * CM_HOLD_NS: programs listen, serve one, and listen again (perftest).
 */
void cm_unlisten(struct cm *cm, uint32_t listener, uint64_t until_ns);

/*
 * Refuse nobody before until_ns, and contradict nobody: listeners and
 * conversations are only just coming back, as to the successor of a broker that
 * was killed.
 */
void cm_expect_listeners(struct cm *cm, uint64_t until_ns);

/*
 * Begins a conversation by a REQ or SIDR_REQ.  0 with its *id; -EDQUOT: the
 * owner has its share of conversations; -ENOMEM: there is none left.
 */
int cm_connect(struct cm *cm, const struct cm_start *start, uint64_t now_ns,
	       uint32_t *id);
/* As it is now; state 0 for one that is over or not there. */
void cm_note_make(struct cm *cm, uint32_t id, struct cm_note *note);
/*
 * Begins a conversation for the owner in the state that the note tells.
 * Nothing in the note is trusted.  0 with *id, which is the note's local_id;
 * -EINVAL: no such conversation can be; -EEXIST: it is here already; -EDQUOT,
 * -ENOMEM as cm_connect.
 */
int cm_note_resume(struct cm *cm, struct cm_owner *owner, uint64_t user,
		   const struct cm_note *note, uint64_t now_ns, uint32_t *id);
/*
 * Releases the conversation that the note is of.  The manager that wrote the
 * note may have released it before it ended, without the peer's hearing of it;
 * to say the end twice does no harm.  The conversation counts for the owner
 * until the peer has answered.
 */
void cm_note_release(struct cm *cm, struct cm_owner *owner,
		     const struct cm_note *note, uint64_t now_ns);
/*
 * Has the connection of that peer's queue pair ended lately, by the peer's word
 * or by both?  Not known of one that has rested since.
 */
bool cm_has_ended(struct cm *cm, const uint8_t peer[16], uint32_t qpn);
/*
 * That peer's queue pair is of no connection with us any more: those that there
 * were have ended (IBTA 12.9.8.3.1).
 */
void cm_stale(struct cm *cm, const uint8_t peer[16], uint32_t qpn,
	      uint64_t now_ns);
/* The owner has seen a request: it no longer counts for the backlog. */
void cm_taken(struct cm *cm, uint32_t id);
void cm_set_user(struct cm *cm, uint32_t id, uint64_t user);
/*
 * Commands.  0, -EINVAL in a state that has no such command, -ENOENT for an id
 * that is no conversation's.
 */
/* reply: the fields of a REP or a SIDR_REP; ids are filled in. */
int cm_accept(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns);
/* reply: reason (or status), additional information, private data. */
int cm_reject(struct cm *cm, uint32_t id, const struct cmmsg *reply,
	      uint64_t now_ns);
/* RTU on the active side; the passive one has seen data (IBTA 12.9.7.2). */
int cm_establish(struct cm *cm, uint32_t id, uint64_t now_ns);
int cm_disconnect(struct cm *cm, uint32_t id, uint64_t now_ns);
/* The owner forgets it: no more events; what the peer is owed is sent. */
void cm_release(struct cm *cm, uint32_t id, uint64_t now_ns);

void cm_rx(struct cm *cm, const uint8_t from[16], const uint8_t to[16],
	   uint32_t scope, const uint8_t *mad, size_t len, uint64_t now_ns);
/* Fires what is due, as far as the rings have room. */
void cm_tick(struct cm *cm, uint64_t now_ns);
/* Take one out; false when there is none. */
bool cm_tx(struct cm *cm, struct cm_frame *frame);
bool cm_event(struct cm *cm, struct cm_event *event);
/* Absolute time of the next cm_tick needed; UINT64_MAX: none. */
uint64_t cm_deadline(const struct cm *cm);

#endif
