/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives the messages of connection management (cmproto.h) that wait in a
 * socket by one system call, in the broker and in its clients.
 *
 * Owner: the thread that receives; no lock.
 */
#ifndef BROKER_CM_INBOX_H
#define BROKER_CM_INBOX_H

#include <sys/socket.h>

#include "broker/cmproto.h"

#define CM_INBOX_MESSAGES 16

struct cm_inbox {
	struct cmproto messages[CM_INBOX_MESSAGES];
	struct iovec at[CM_INBOX_MESSAGES];
	struct mmsghdr of[CM_INBOX_MESSAGES]; /* msg_len: bytes of each */
};

void cm_inbox_init(struct cm_inbox *in);
/*
 * Receives up to CM_INBOX_MESSAGES messages of fd, with flags of recvmmsg(2).
 * Returns their number, 0 at the end of the connection, or -1 with errno.  An
 * end behind messages is found by the next call.
 */
int cm_inbox_receive(struct cm_inbox *in, int fd, int flags);

#endif
