/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/cm_inbox.h"

#include <string.h>

void cm_inbox_init(struct cm_inbox *in)
{
	memset(in->of, 0, sizeof(in->of));
	for (int i = 0; i < CM_INBOX_MESSAGES; i++) {
		in->at[i] = (struct iovec){&in->messages[i],
					   sizeof(in->messages[i])};
		in->of[i].msg_hdr.msg_iov = &in->at[i];
		in->of[i].msg_hdr.msg_iovlen = 1;
	}
}

int cm_inbox_receive(struct cm_inbox *in, int fd, int flags)
{
	int n = recvmmsg(fd, in->of, CM_INBOX_MESSAGES, flags, NULL);

	/* a message of 0 bytes stands for the end of the connection */
	for (int i = 0; i < n; i++)
		if (!in->of[i].msg_len)
			return i;
	return n;
}
