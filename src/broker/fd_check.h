/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the descriptors that a broker sends: each comes from another
 * process, and may be anything.  No state. */
#ifndef BROKER_FD_CHECK_H
#define BROKER_FD_CHECK_H

#include <stdbool.h>

/*
 * Whether fd receives the frames of port 4791: it is a UDP socket bound to that
 * port, in the network namespace of the connection `broker`; or it may be the
 * end of a relay (wire/relay.h).
 */
bool fd_check_is_receiver(int fd, int broker);
/* Whether fd may be an fd store (fd_store.h): it is a SOCK_SEQPACKET unix
 * socket.  The contents are not checked. */
bool fd_check_is_store(int fd);
/* Whether fd is an eventfd to which a write does not wait. */
bool fd_check_is_kick(int fd);

#endif
