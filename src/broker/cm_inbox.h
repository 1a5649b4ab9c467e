/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives by one system call several messages of connection management
 * (cmproto.h) that wait in a socket.  The broker, the fabric's process and the
 * clients of both use this file.
 *
 * Owner: the thread that receives.  No lock.
 */
#ifndef BROKER_CM_INBOX_H
#define BROKER_CM_INBOX_H

#include <sys/socket.h>

#include "broker/cmproto.h"

/* how many messages one call receives at most */
#define CM_INBOX_MESSAGES 16

/* The messages of the last call, and room for those of the next one. */
struct cm_inbox {
	struct cmproto messages[CM_INBOX_MESSAGES];
	struct iovec at[CM_INBOX_MESSAGES]; /* at[i] is where message i goes */
	/* of[i].msg_len is the number of bytes of message i */
	struct mmsghdr of[CM_INBOX_MESSAGES];
};

/* Prepares *in, which must not be moved after that. */
void cm_inbox_init(struct cm_inbox *in);
/*
 * Receives up to CM_INBOX_MESSAGES messages from the socket fd to in->messages,
 * with flags of recvmmsg(2).  Returns their number, 0 at the end of the
 * connection, or -1 with errno.  If the connection ends after some messages,
 * the next call returns 0.
 */
int cm_inbox_receive(struct cm_inbox *in, int fd, int flags);

#endif
