/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen: whether a server is ready: the process or a descendant of it has a
 * TCP socket in state LISTEN.  Without /proc, which tells the process of a
 * socket: a socket listens at the port that was reserved for the server.  Time
 * is no sign.
 */
#ifndef TOOLS_LISTEN_H
#define TOOLS_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

/* Has @pid or a descendant a listening TCP socket?  @port: the port that was
 * reserved for it, or 0. */
bool listen_is_ready(pid_t pid, int port);

/*
 * Reserves a TCP port for the lifetime of this process.  The port is below the
 * ephemeral range, so that no connection gets it, and no other `adverb pair`
 * reserves it.  Returns the port or -errno.
 */
int listen_port_get(void);

#endif
