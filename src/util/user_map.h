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

/* Does the number certainly stand for one user alone?  If the process has no
 * free descriptor or no memory, this is not certain for the number overflowuid.
 */
bool user_map_is_one(uid_t user);
/* Is `user` certainly the user of this process?  False also if other users have
 * the process's number here, or may have it (user_map_is_one). */
bool user_map_is_own(uid_t user);

#endif
