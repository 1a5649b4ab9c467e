/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Users as this process's user namespace numbers them (user_namespaces(7)).  If
 * the namespace does not map every user, all users that it does not map have
 * one number there, that of /proc/sys/kernel/overflowuid.  Thread-safe;
 * stateless, since a program may enter another namespace.
 */
#ifndef UTIL_USER_MAP_H
#define UTIL_USER_MAP_H

#include <stdbool.h>
#include <sys/types.h>

/* Does the number stand for one user alone?  The answer for overflowuid is also
 * true if the user namespace cannot be found out, for example because the
 * process has no free descriptor. */
bool user_map_is_one(uid_t user);
/* Is `user` the user of this process?  False if other users may have the
 * process's number here (user_map_is_one). */
bool user_map_is_own(uid_t user);

#endif
