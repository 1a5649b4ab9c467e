/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which groups a UDP socket hears, on which interfaces (RFC 3678).  Addresses
 * are 16 bytes, IPv4 mapped.  The socket is the caller's; no lock.
 */
#ifndef WIRE_MEMBER_H
#define WIRE_MEMBER_H

#include <stdint.h>

/* 0, also if it is one already; -errno. */
int member_join(int fd, const uint8_t ip[16], uint32_t ifindex);
/* On every interface. */
void member_leave(int fd, const uint8_t ip[16]);
/* Every group of this network namespace: of a socket whose owner is dead. */
void member_leave_all(int fd);

#endif
