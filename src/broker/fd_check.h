/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a broker lends, looked at before it is used: each descriptor comes from
 * another process, and may be anything.  No state.
 */
#ifndef BROKER_FD_CHECK_H
#define BROKER_FD_CHECK_H

#include <stdbool.h>

/*
 * Does it bring the frames of port 4791: a UDP socket bound there, in the
 * network namespace of @broker, the connection that it came by; or the end of a
 * relay (wire/relay.h)?
 */
bool fd_check_is_receiver(int fd, int broker);
/* Is it a safe, as far as it is a socket of messages (fd_store.h)? */
bool fd_check_is_safe(int fd);
/* An eventfd to which a write does not wait, a neighbour's kick? */
bool fd_check_is_kick(int fd);

#endif
