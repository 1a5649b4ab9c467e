/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks of the descriptors that a broker sends: each comes from another
 * process, and may be anything.  No state. */
#ifndef BROKER_FD_CHECK_H
#define BROKER_FD_CHECK_H

#include <stdbool.h>

/*
 * Whether fd brings the frames of port 4791: a UDP socket bound there, in the
 * network namespace of broker, the connection that it came by; or the end of a
 * relay (wire/relay.h).
 */
bool fd_check_is_receiver(int fd, int broker);
/* Whether fd can be an fd store, as far as it is a socket of messages
 * (fd_store.h). */
bool fd_check_is_store(int fd);
/* Whether fd is an eventfd to which a write does not wait. */
bool fd_check_is_kick(int fd);

#endif
