/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker's answers to its clients' questions about other processes.  Part
 * of the broker's loop: one owner, no lock.  No call waits: if the client's
 * socket has no room, the answer is lost.
 */
#ifndef BROKER_ANSWER_H
#define BROKER_ANSWER_H

#include "broker/inside.h"

/* Completes m, the answer to a question of c, and sends m with the descriptors
 * that m->brings names, which stay the caller's.  fds may be NULL if m->brings
 * is 0.  Returns 0, or an error of proto_send. */
int answer_send(const struct conn *c, const struct proto *question,
		struct proto *m, const int *fds);
/* Refuses a question of c with err, a positive errno, and the sentence why,
 * which is copied. */
void answer_refuse(const struct conn *c, const struct proto *question, int err,
		   const char *why);

/* Answers PROTO_WHO: introduces the broker to c. */
void answer_who(const struct server *s, const struct conn *c,
		const struct proto *m);
/* Refuses a client of another version, in a form that a client of any version
 * can read. */
void answer_version(const struct server *s, const struct conn *c,
		    const struct proto *m);
/* Answers PROTO_ASK: says whether the process that has a QPN exists and, if the
 * process is of the same user as c, whether the process drops packets to this
 * QPN. */
void answer_peer(const struct server *s, const struct conn *c,
		 const struct proto *m);
/* Answers the broker of another host: returns whether the process that has a
 * QPN exists and, if the process is of the broker's own user, whether the
 * process drops packets to this QPN.  Has the type remote_liveness_state; user
 * is the struct server. */
enum livemsg_state answer_state(void *user, uint32_t qpn);
/* Answers PROTO_ASK_REMOTE, a question about a process of another host: at once
 * if the broker knows the answer, or cannot ask the other host for c; otherwise
 * later by answer_remote_all.  now_ns: CLOCK_MONOTONIC. */
void answer_remote(struct server *s, struct conn *c, const struct proto *m,
		   uint64_t now_ns);
/* Asks other hosts about the peers that cmserver_doubts gives, and passes on
 * the answers that have come from other hosts.  now_ns: CLOCK_MONOTONIC. */
void answer_remote_all(struct server *s, uint64_t now_ns);
/* Answers PROTO_PAGE: sends the page of a class, if the process that has the
 * class is of the same user as c and not too many descriptors are in flight;
 * otherwise answers without a page. */
void answer_page(const struct server *s, const struct conn *c,
		 const struct proto *m);
/* Answers PROTO_ARENA: tells c where the arena of the process that has a class
 * is, if that process is of the same user as c and shows its arena, and not too
 * many descriptors are in flight; otherwise tells c why not (enum proto_arena).
 * The kernel lets c's process open that arena only if c's process may debug the
 * arena's owner (ptrace(2)).  now_ms: CLOCK_MONOTONIC. */
void answer_arena(struct server *s, struct conn *c, const struct proto *m,
		  uint64_t now_ms);
/* Answers PROTO_SOURCE: says whether the user of the process that has a class
 * owns a source port. */
void answer_source(const struct server *s, const struct conn *c,
		   const struct proto *m);

#endif
