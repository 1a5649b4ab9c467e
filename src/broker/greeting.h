/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a client gets its class: the broker's answer to PROTO_HELLO.  A hello
 * waits for some seconds if the port belongs to programs whose broker has died,
 * until one of them brings the fd store of that broker.
 *
 * Part of the broker's loop: one owner, no lock.  A call waits only while it
 * closes descriptors that a client's message has brought.
 */
#ifndef BROKER_GREETING_H
#define BROKER_GREETING_H

#include "broker/inside.h"

/* How often the port is tried for a hello that waits, in milliseconds. */
#define GREETING_RETRY_MS 50

/* Opens the socket of QP1 (gsi.h).  The group must have a member. */
void greeting_open_gsi(struct server *s);
/* Takes m, a PROTO_HELLO of c, and answers it now or later.  Takes ownership of
 * the descriptors in fds that it needs, and sets these entries to -1. */
void greeting_take(struct server *s, struct conn *c, const struct proto *m,
		   int fds[PROTO_FDS]);
/* Answers the hellos that wait, if they can be answered now. */
void greeting_retry(struct server *s);
/* Returns what fd_store_process returns for the process that an earlier broker
 * gave `class`: a pidfd, which the caller owns, or -errno.  The group must have
 * an fd store. */
int greeting_watch(const struct server *s, uint32_t class);
/* Ends the wait of a hello of c, and closes the socket that came with the
 * hello.  Does nothing if no hello waits. */
void greeting_end(struct conn *c);
/* Closes the eventfd of c. */
void greeting_close_wake_fd(struct conn *c);

#endif
