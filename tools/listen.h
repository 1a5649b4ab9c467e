/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen: has a process opened its door?
 *
 * A server is ready when it, or a child of it, holds a TCP socket in state
 * LISTEN.  Nothing is guessed from time.
 */
#ifndef TOOLS_LISTEN_H
#define TOOLS_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

/* True if @pid or one of its descendants has a listening TCP socket. */
bool listen_is_ready(pid_t pid);

/*
 * Reserves a TCP port below the ephemeral range for this process's lifetime:
 * no connection takes it by chance, no other `adverb pair` takes it at all.
 * Returns the port or -errno.
 */
int listen_port_get(void);

#endif
