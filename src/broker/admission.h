/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which connections the broker admits.  The table of connections and
 * the limit on open files (ADMISSION_FILES) bound the number of connections.  A
 * user that has n connections gets another one only if more than n are free, so
 * that no user takes all.  For the broker's own user the table alone counts:
 * that user gets another one as long as any entry is free.  USER_NONE, which
 * stands for all users that cannot be told from each other, counts as one user.
 *
 * Part of the broker's loop: one owner, no lock.
 */
#ifndef BROKER_ADMISSION_H
#define BROKER_ADMISSION_H

#include "broker/inside.h"

/*
 * The descriptors that one connection may need.  Up to eight are open: the
 * connection, the two sockets of the pair to the thread of its user, the
 * eventfd of that thread, a pidfd, the eventfd that wakes the client, the page,
 * and the sending end of the relay.  Up to ten more are under way, in messages
 * that the client has not read (unread.h).  The kernel compares the number of
 * open descriptors with the limit on open files, and, separately, the number
 * under way.  So only the larger number, ten, counts.
 */
#define ADMISSION_FILES 10

/* Asks whether the broker s, which may have `files` open files, admits another
 * connection of `user`.  Returns 0, or -EUSERS; then a sentence for the client
 * is in the `size` bytes at why. */
int admission_check(const struct server *s, uint64_t files, uid_t user,
		    char *why, size_t size);

/* Accepts one connection, and admits or refuses its client.  True: the caller
 * may call again.  False: no connection waits, accept(2) fails for this
 * connection or for a time, no descriptor is left, or the listener accepts no
 * more, which sets s->listener_err. */
bool admission_accept(struct server *s);

#endif
