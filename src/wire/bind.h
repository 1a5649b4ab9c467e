/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP sockets that are bound to a port.  No state, no lock. */
#ifndef WIRE_BIND_H
#define WIRE_BIND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns a non-blocking UDP socket, bound to `port` on every local address, or
 * -errno; the caller closes the socket.  If *is_v4 is true, or if the kernel
 * has no IPv6, the socket is for IPv4 alone, and *is_v4 is true on return.
 * Otherwise the socket is dual-stack.
 */
int bind_udp(uint16_t port, bool *is_v4);
/* Calls setsockopt with `value`, an int.  Returns 0 or -errno. */
int bind_set(int fd, int level, int name, int value);
/* Sets a buffer size of the socket to 8 MiB: by option `forced`, which needs a
 * privilege, or else by option `name`, which the system limits.  A failure is
 * ignored: a smaller buffer only makes transfers slower. */
void bind_buffer(int fd, int forced, int name);

#endif
