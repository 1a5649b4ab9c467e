/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user of another process, as far as that can be told.  In a user namespace
 * all users without a number there read as the overflow uid
 * (user_namespaces(7)): two processes with that uid may be of two users, so
 * they share nothing.
 */
#ifndef BROKER_USER_H
#define BROKER_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* A user that cannot be told from others; no process has this uid. */
#define USER_NONE ((uid_t)-1)

/*
 * Whether that uid stands for users that cannot be told apart.  False in a
 * network namespace that belongs to this user namespace: only users with power
 * over both namespaces can be there.
 */
bool user_is_nobody(uid_t user);
/* Finds out which user and network namespaces this process is in, for
 * user_is_nobody and user_of.  The first call opens files: a program makes it
 * while descriptors are left. */
void user_prepare(void);
/* Returns the user of a process by its SO_PEERCRED: its uid, or USER_NONE. */
uid_t user_of(const struct ucred *who);
/* Whether these are one user; false for USER_NONE, which stands for several. */
static inline bool user_is_same(uid_t a, uid_t b)
{
	return a == b && a != USER_NONE;
}

#endif
