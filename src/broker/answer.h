/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the broker answers to its clients' questions about each other.  Part of
 * its loop: one owner, no lock.  Never waits: a client that does not read loses
 * its answers.
 */
#ifndef BROKER_ANSWER_H
#define BROKER_ANSWER_H

#include "broker/inside.h"

/* Completes m, the answer to a question, and sends it with the descriptors
 * that m->brings says; 0 or -errno. */
int answer_send(const struct conn *c, const struct proto *question,
		struct proto *m, const int *fds);
/* err: an errno; why: a sentence. */
void answer_refuse(const struct conn *c, const struct proto *question, int err,
		   const char *why);

/* Each to a question m of c's: who the broker is. */
void answer_who(const struct server *s, const struct conn *c,
		const struct proto *m);
/* The client is of another version: it is refused, in a form that every
 * version reads. */
void answer_version(const struct server *s, const struct conn *c,
		    const struct proto *m);
/* Does the process live that a QPN belongs to? */
void answer_peer(const struct server *s, const struct conn *c,
		 const struct proto *m);
/* The same for another host's broker: a remote_liveness_state, whose user is s;
 */
enum livemsg_state answer_state(void *user, uint32_t qpn);
/* and of a process there: asks, and answers when it has heard. */
void answer_remote(struct server *s, struct conn *c, const struct proto *m,
		   uint64_t now_ns);
void answer_remote_all(struct server *s, uint64_t now_ns);
/* A page, to whoever asks, of any user: it says how much has been taken, no
 * more. */
void answer_page(const struct server *s, const struct conn *c,
		 const struct proto *m);
/* Where an arena is, only to processes of the same user, of which the kernel
 * then lets those open it who could as well debug its owner. */
void answer_arena(struct server *s, struct conn *c, const struct proto *m,
		  uint64_t now_ms);
/* Whether a source port is that of a class's user. */
void answer_source(const struct server *s, const struct conn *c,
		   const struct proto *m);

#endif
