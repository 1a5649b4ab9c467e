/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients do not read.  The descriptors in messages that a client has not
 * read count for the broker's user, of whom the kernel lets no more be under
 * way than RLIMIT_NOFILE (ETOOMANYREFS, unix(7)), whichever client they are
 * for. So a request for a descriptor stays in the socket until the client has
 * read earlier answers, and a connection that has ended stays open, and counts
 * for its user, until its client has read or closed it: what the broker has
 * sent there is under way until then.
 *
 * Part of the broker's loop: one owner, no lock, no call waits.
 */
#ifndef BROKER_UNREAD_H
#define BROKER_UNREAD_H

#include "broker/inside.h"

/* Bytes of kernel memory: about six messages. */
#define UNREAD_BYTES 4096

/* The bytes of kernel memory of what the broker has sent at fd and the client
 * has not read. */
uint32_t unread_bytes(int fd);
/* Whether c may be sent another descriptor.  If not, c is not polled for
 * requests until unread_poll finds that it has read. */
bool unread_may_send(struct conn *c, uint64_t now_ms);
/* The events that c is to be polled for. */
short unread_poll(struct conn *c);
/* How many milliseconds poll may wait, if it would wait so many (-1: without an
 * end). */
int unread_patience(const struct server *s, uint64_t now_ms, int wait);

#endif
