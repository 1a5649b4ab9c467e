/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the descriptors that a program gets from a broker or a fabric, that a
 * fabric gets from a program, and that a broker gets from the fd store of an
 * earlier one: a descriptor from another process may be of any file.  No state.
 */
#ifndef BROKER_FD_CHECK_H
#define BROKER_FD_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Can fd receive the datagrams of port 4791?  True if fd is a UDP socket that
 * is bound to that port, in the network namespace of `broker`.
 * `broker` is a socket of the broker, or the connection to the broker.  A
 * kernel before Linux 5.14 does not tell a socket's namespace: there a socket
 * of any namespace passes.  Also true if fd is a SOCK_SEQPACKET unix socket
 * that does not listen, since that may be the receiving end of a relay
 * (wire/relay.h).
 */
bool fd_check_is_receiver(int fd, int broker);
/* Is fd a SOCK_SEQPACKET unix socket that does not listen?  Only such a socket
 * may be an fd store (fd_store.h) or an end of a relay.  The function does not
 * look at the messages in the socket. */
bool fd_check_is_messages(int fd);
/* Is fd a memfd of that many bytes that no process can shorten or lengthen?  An
 * access to the mapping of such a memfd never raises SIGBUS, and a read of it
 * never waits. */
bool fd_check_is_sealed(int fd, size_t bytes);
/* Is fd a non-blocking eventfd, to which a write never waits?  Without /proc,
 * any non-blocking file passes. */
bool fd_check_is_wake(int fd);

#endif
