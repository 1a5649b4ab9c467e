/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/scm_rights.h"

#include <string.h>
#include <unistd.h>

size_t scm_rights_take(struct msghdr *m, int *fds, size_t most)
{
	size_t taken = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(fd), sizeof(fd));
			if (taken < most)
				fds[taken++] = fd;
			else
				close(fd);
		}
	}
	return taken;
}

void scm_rights_let_bring(int socket, bool may)
{
#ifdef SO_PASSRIGHTS
	const int on = may;

	setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
#else
	(void)socket;
	(void)may;
#endif
}
