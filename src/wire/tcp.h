/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connected TCP socket that does not block: bytes out and in, and its end.
 * The owner is the caller's; one thread at a time uses a socket.
 */
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Prepares a socket for short messages that are answered at once: no delay for
 * the sake of larger segments. */
void tcp_open(int fd);
/* Stores the peer's address, IPv4 as ::ffff:a.b.c.d; zeroes if the connection
 * is gone. */
void tcp_peer(int fd, uint8_t ip[16]);
/* Sends bytes.  Returns how many the socket took, 0 if it is full; -errno if
 * the connection is broken. */
ssize_t tcp_send(int fd, const void *bytes, size_t count);
/* Receives bytes.  Returns how many; 0 at the end of the peer's bytes; -EAGAIN
 * if none have come; another -errno if the connection is broken. */
ssize_t tcp_receive(int fd, void *bytes, size_t room);
/* Waits until the socket takes bytes, or is broken, for that long at most. */
void tcp_await_room(int fd, int ms);
/* Sends FIN behind all bytes. */
void tcp_finish(int fd);
/* Ends both directions, also if a child of fork has a copy of the descriptor,
 * for which a close would do nothing. */
void tcp_end(int fd);

#endif
