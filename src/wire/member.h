/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The multicast groups of a UDP socket (RFC 3678).  Addresses have 16 bytes; an
 * IPv4 address is ::ffff:a.b.c.d.  The socket is the caller's; no lock.
 */
#ifndef WIRE_MEMBER_H
#define WIRE_MEMBER_H

#include <stdint.h>

/* Joins a group on the interface with this index.  Returns 0, also if the
 * socket is a member already, or -errno. */
int member_join(int fd, const uint8_t ip[16], uint32_t ifindex);
/* Leaves a group on every interface.  If the interfaces cannot be listed,
 * because the process can open no further descriptor or has no memory left, the
 * socket stays a member. */
void member_leave(int fd, const uint8_t ip[16]);
/* Leaves every group on every interface: for a socket whose groups are not
 * known, such as the socket of a dead process.  If /proc/net/igmp or igmp6
 * cannot be opened, the socket stays a member of the groups of that address
 * family. */
void member_leave_all(int fd);

#endif
