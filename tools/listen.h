/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen: has a process opened its door?
 *
 * A server is ready when it, or a child of it, holds a TCP socket in state
 * LISTEN; where no /proc says whose a socket is, when one listens at the port
 * that was reserved for it.  Nothing is guessed from time.
 */
#ifndef TOOLS_LISTEN_H
#define TOOLS_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

/* True if @pid or one of its descendants has a listening TCP socket; @port:
 * that was reserved for it, or 0. */
bool listen_is_ready(pid_t pid, int port);

/*
 * Reserves a TCP port below the ephemeral range for this process's lifetime:
 * no connection takes it by chance, no other `adverb pair` takes it at all.
 * Returns the port or -errno.
 */
int listen_port_get(void);

#endif
