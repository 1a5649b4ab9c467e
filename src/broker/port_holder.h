/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out which process has UDP port 4791, as far as /proc shows the process
 * to this user.  No state. */
#ifndef BROKER_PORT_HOLDER_H
#define BROKER_PORT_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Writes to text, of size bytes, which process has the port, for example
 * "rxe_tester (process 12 of user 1000)", or that the kernel or a process that
 * this user cannot see has it.  False: the port is free, or /proc cannot be
 * read. */
bool port_holder_name(char *text, size_t size);

/* Sets *user to the user whose socket has the port.  False: the port is free,
 * or the kernel itself has it, or /proc cannot be read. */
bool port_holder_user(uid_t *user);

/* Returns whether process pid of `user` may have the port: a socket of that
 * user has the port, and the process has that socket, hides its descriptors
 * from this user, or has ended.  pid 0: the process is not visible, so it may
 * have any socket of that user.  user: as user_of returns it (user.h). */
bool port_holder_may_be(uid_t user, pid_t pid);

/* Returns whether a socket that another user made has the port; false if the
 * kernel itself has the port. */
bool port_holder_is_other_user(void);

#endif
