/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends and receives bytes on a connected TCP socket, and ends the connection.
 * Only tcp_await_room blocks.  The caller owns the socket; one thread at a time
 * uses it.
 */
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include <stddef.h>
#include <sys/types.h>

/* Sets TCP_NODELAY, so that a short message is not delayed until a larger
 * segment can be sent. */
void tcp_set_nodelay(int fd);
/* Sends up to `count` bytes.  Returns how many the socket took; 0 if the socket
 * is full or the kernel is short of memory; -errno if the connection is broken.
 */
ssize_t tcp_send(int fd, const void *bytes, size_t count);
/* Receives up to `room` bytes.  Returns how many; 0 if the peer has sent FIN;
 * -EAGAIN if no bytes have come; another -errno if the connection is broken. */
ssize_t tcp_receive(int fd, void *bytes, size_t room);
#define TCP_AWAIT_MAX 64 /* sockets of one tcp_await_room */
/* Waits until one of the sockets has room for bytes, or its connection is
 * broken, at most `ms` milliseconds.  A signal handler may end the wait
 * earlier. */
void tcp_await_room(const int *fds, size_t count, int ms);
/* Sends FIN after all bytes that tcp_send has taken. */
void tcp_finish(int fd);
/* Ends both directions.  Works also if a child of fork has a copy of the
 * descriptor; close would then leave the connection open. */
void tcp_end(int fd);

#endif
