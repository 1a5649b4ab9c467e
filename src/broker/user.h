/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The user of another process, as far as it can be told.  In a user namespace
 * all users that have no number there read as the overflow uid
 * (user_namespaces(7)).  Two processes with that uid may be of two users, so
 * the broker lets the two share nothing.
 */
#ifndef BROKER_USER_H
#define BROKER_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Stands for a user that cannot be told from others; no process has this uid.
 */
#define USER_NONE ((uid_t)-1)

/*
 * Returns whether this uid stands for users that cannot be told from each
 * other.  False for every uid if the network namespace belongs to this user
 * namespace, because only a process with power over both namespaces can bring a
 * user without a number into that network namespace.
 */
bool user_is_nobody(uid_t user);
/* Returns whether /proc shows this process's namespaces.  Without /proc,
 * user_is_nobody is true for the overflow uid. */
bool user_has_proc(void);
/* Finds out which user and network namespaces this process is in, for
 * user_is_nobody and user_of.  The first call opens files, so it is made while
 * this process has descriptors left. */
void user_prepare(void);
/* Returns the user of the process that SO_PEERCRED names: its uid, or
 * USER_NONE. */
uid_t user_of(const struct ucred *who);
/* Returns whether a and b are the same user; false for USER_NONE, which stands
 * for several users. */
static inline bool user_is_same(uid_t a, uid_t b)
{
	return a == b && a != USER_NONE;
}

#endif
