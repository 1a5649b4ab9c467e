/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP sockets that are bound to a port.  No state, no lock. */
#ifndef WIRE_BIND_H
#define WIRE_BIND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns a non-blocking UDP socket, bound to `port` on every local address, or
 * -errno; the caller closes the socket.  The socket is dual-stack, or for IPv4
 * alone if *is_v4 is true or the kernel has no IPv6, and then *is_v4 is set.
 */
int bind_udp(uint16_t port, bool *is_v4);
/* Calls setsockopt with an int.  Returns 0 or -errno. */
int bind_set(int fd, int level, int name, int value);
/* Sets a buffer size of the socket to 8 MiB: by option `forced`, which takes a
 * privilege, or by option `name`, up to the system's limit.  A failure is
 * ignored: a smaller buffer only makes transfers slower. */
void bind_buffer(int fd, int forced, int name);

#endif
