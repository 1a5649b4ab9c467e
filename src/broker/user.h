/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which user another process is of, as far as that can be told.  In a user
 * namespace all that have no number there read as the overflow uid
 * (user_namespaces(7)): any two of them may be two, so none is anybody's user.
 */
#ifndef BROKER_USER_H
#define BROKER_USER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Of one that cannot be told from others; no process has it. */
#define USER_NONE ((uid_t)-1)

/*
 * Is it one of those who cannot be told from each other?  Never in a network
 * namespace that belongs to our user namespace: nobody else can be there but
 * those who have power over both.
 */
bool user_is_nobody(uid_t user);
/* That takes descriptors the first time: for who may have none left later. */
void user_prepare(void);
/* Of what SO_PEERCRED says: its uid or USER_NONE. */
uid_t user_of(const struct ucred *who);
/* Are these one user?  Whoever cannot be told from others is not. */
static inline bool user_is_same(uid_t a, uid_t b)
{
	return a == b && a != USER_NONE;
}

#endif
