/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen: says whether a server is ready: the server's process, or a descendant
 * in at most four generations, has a TCP socket in state LISTEN.  Without /proc
 * there is no way to find a socket's process; then a server is ready if any
 * socket listens at the port that was reserved for the server.
 */
#ifndef TOOLS_LISTEN_H
#define TOOLS_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

/* Notes which sockets this process has open now.  A server may inherit them,
 * but none of them makes the server ready.  A later call replaces the notes. */
void listen_leave_out(void);

/* Returns whether the server that process @pid runs is ready.  @port: the port
 * that was reserved for the server, or 0.  Returns false if the system does not
 * list its sockets. */
bool listen_is_ready(pid_t pid, int port);

/*
 * Reserves a TCP port for the lifetime of this process.  The port is below the
 * default ephemeral range of Linux, so that the kernel gives the port to no
 * connection, and no other `adverb pair` of this network namespace reserves the
 * port.  Returns the port; -EADDRINUSE: no port is free; or another -errno: the
 * port cannot be reserved.
 */
int listen_port_get(void);

#endif
