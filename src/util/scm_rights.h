/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptors that a message of a Unix socket has brought.  Each recvmsg(2)
 * that succeeds opens these descriptors in the receiver, even if the message is
 * empty or too short, or has more descriptors than the receiver expects.  So a
 * receiver that passes a buffer for control data takes the descriptors before
 * it looks at the message, and closes those that it does not use.  Otherwise
 * the sender could use up the receiver's descriptors.
 */
#ifndef UTIL_SCM_RIGHTS_H
#define UTIL_SCM_RIGHTS_H

#include <stddef.h>
#include <sys/socket.h>

/* Stores the descriptors that came with the message m of recvmsg(2) in fds, in
 * order, and closes those after the first `most`.  Returns the number stored;
 * the caller owns these descriptors. */
size_t scm_rights_take(struct msghdr *m, int *fds, size_t most);

#endif
