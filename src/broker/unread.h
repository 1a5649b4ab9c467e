/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that clients do not read.  The descriptors in such a message count
 * for the broker's user, whichever client the message is for.  The kernel lets
 * a user have no more descriptors under way than RLIMIT_NOFILE (ETOOMANYREFS,
 * unix(7)).  So a request for a descriptor stays in the socket until its client
 * has read earlier answers.  When the broker ends a connection, it keeps its
 * socket open until the client has read everything or has closed the other
 * socket, since the descriptors that the broker has sent are under way until
 * then.  Until then the connection also counts for its user (conn.is_over).
 *
 * Part of the broker's loop: one owner, no lock, no call waits.
 */
#ifndef BROKER_UNREAD_H
#define BROKER_UNREAD_H

#include "broker/inside.h"

/* How many bytes of kernel memory a client may leave unread before its requests
 * wait.  That is room for a few messages, since the kernel counts its own
 * overhead, too. */
#define UNREAD_BYTES 4096

/* Returns how many bytes of kernel memory the messages take that the broker has
 * sent at fd and the client has not read; 0 if the kernel does not tell. */
uint32_t unread_bytes(int fd);
/* May another descriptor be sent to c?  If not, the requests of c wait:
 * unread_poll does not ask for POLLIN until the client has read enough.
 * now_ms: CLOCK_MONOTONIC. */
bool unread_may_send(struct conn *c, uint64_t now_ms);
/* Returns the events for which to poll in_fd of c: POLLIN, or 0 while the
 * requests of c wait. */
short unread_poll(struct conn *c);
/* Returns how many milliseconds poll may wait, so that the broker notices soon
 * which clients have read their messages.  `wait`: how long poll may wait for
 * other reasons; -1: without an end. */
int unread_patience(const struct server *s, uint64_t now_ms, int wait);

#endif
