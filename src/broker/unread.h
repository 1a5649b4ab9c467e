/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that clients do not read.  The descriptors in such messages count
 * for the broker's user, whichever client they are for, and the kernel lets a
 * user have no more under way than RLIMIT_NOFILE (ETOOMANYREFS, unix(7)).  So a
 * request for a descriptor stays in the socket until the client has read
 * earlier answers, and a connection that has ended stays open, and counts for
 * its user, until its client has read or closed it: what the broker has sent
 * there is under way until then.
 *
 * Part of the broker's loop: one owner, no lock, no call waits.
 */
#ifndef BROKER_UNREAD_H
#define BROKER_UNREAD_H

#include "broker/inside.h"

/* Bytes of kernel memory that may be unread before a request waits: about six
 * messages. */
#define UNREAD_BYTES 4096

/* Returns the bytes of kernel memory of the messages that the broker has sent
 * at fd and the client has not read. */
uint32_t unread_bytes(int fd);
/* Whether c may be sent another descriptor.  If not, c is not polled for
 * requests until unread_poll finds that it has read. */
bool unread_may_send(struct conn *c, uint64_t now_ms);
/* Returns the events to poll c's connection for. */
short unread_poll(struct conn *c);
/* Returns how many milliseconds poll may wait, if it would otherwise wait for
 * `wait` (-1: without an end). */
int unread_patience(const struct server *s, uint64_t now_ms, int wait);

#endif
