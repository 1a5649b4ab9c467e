/* SPDX-License-Identifier: BSD-2-Clause */
/* bind: UDP sockets with a port of their own.  No state, no lock. */
#ifndef WIRE_BIND_H
#define WIRE_BIND_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A socket that does not wait, bound to `port` on every local address; fd or
 * -errno.  Dual-stack, but of IPv4 alone if *is_v4 wants it, or where there is
 * no IPv6: then *is_v4 says so.
 */
int bind_udp(uint16_t port, bool *is_v4);
/* setsockopt of an int: 0 or -errno. */
int bind_set(int fd, int level, int name, int value);
/* The larger of both buffers that we can have.  A smaller one works, slower. */
void bind_buffer(int fd, int forced, int name);

#endif
