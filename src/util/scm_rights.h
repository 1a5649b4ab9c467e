/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The descriptors that a message of a Unix socket brings.  A recvmsg(2)
 * with a buffer for control data opens in the receiver as many of these
 * descriptors as fit into the buffer and as the limit on open files allows,
 * even if the message is empty or too short, or has more descriptors than the
 * receiver expects.  So such a receiver takes the descriptors before it looks
 * at the message, and closes those that it does not use.  Otherwise the sender
 * could use up the receiver's descriptors.
 */
#ifndef UTIL_SCM_RIGHTS_H
#define UTIL_SCM_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* Linux has this option since 6.16; SPARC and PA-RISC have other numbers. */
#if !defined(SO_PASSRIGHTS) && !defined(__sparc__) && !defined(__hppa__)
#define SO_PASSRIGHTS 83
#endif

/* The most descriptors of a message of scm_rights_send. */
#define SCM_RIGHTS_MOST 32

/*
 * Sends a message of `size` bytes with n descriptors, at most SCM_RIGHTS_MOST,
 * which stay the caller's.  flags: as of sendmsg(2); MSG_NOSIGNAL is added.
 * Returns what sendmsg returns.  The kernel compares the sender's soft limit on
 * open files with the number of descriptors that all processes of the user have
 * in flight.  If the soft limit is too low, the call raises the limit to the
 * hard one for the time of the sendmsg.
 */
ssize_t scm_rights_send(int socket, const void *bytes, size_t size,
			const int *fds, size_t n, int flags);

/* Stores the descriptors that came with the message m of recvmsg(2) in fds, in
 * order, and closes those after the first `most`.  Returns the number stored;
 * the caller owns these descriptors. */
size_t scm_rights_take(struct msghdr *m, int *fds, size_t most);

/*
 * Sets whether the other end of a Unix socket, or of each connection that comes
 * to a listening socket, may send descriptors.  If not, a send with descriptors
 * fails with EPERM.  Messages that have been sent already are not changed.  On
 * a kernel before Linux 6.16 (SO_PASSRIGHTS) the call does nothing, and the
 * other end may always send descriptors.
 */
void scm_rights_let_bring(int socket, bool may);

#endif
