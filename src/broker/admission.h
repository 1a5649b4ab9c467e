/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which connections the broker admits.  A user may have as many connections as
 * are left for all other users, so that no user takes all; the broker's own
 * user is exempt.  USER_NONE, which stands for all users that cannot be told
 * from each other, counts as one user.
 *
 * Part of the broker's loop: one owner, no lock.
 */
#ifndef BROKER_ADMISSION_H
#define BROKER_ADMISSION_H

#include "broker/inside.h"

/*
 * The descriptors that one connection may need: open are the connection, its
 * process, its eventfd, its page and both ends of its relay; unread by the
 * client (unread.h) are up to ten.
 */
#define ADMISSION_FILES 10

/*
 * Whether the broker s, with a limit of `files` open files, admits another
 * connection of user.  0; or -EUSERS and, in the size bytes at why, a sentence.
 */
int admission_check(const struct server *s, uint64_t files, uid_t user,
		    char *why, size_t size);

#endif
