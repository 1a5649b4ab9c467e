/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/scm_rights.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/check.h"

static bool is_same_limit(const struct rlimit *a, const struct rlimit *b)
{
	return a->rlim_cur == b->rlim_cur && a->rlim_max == b->rlim_max;
}

/*
 * Sets the limit on open files, which this thread has set to `raised`, back to
 * `before`.  If another thread of the program has set a limit meanwhile, that
 * limit stays.  Each prlimit returns the limit that it replaces.  If the
 * returned limit is not the one that this thread has set last, the returned
 * limit is the program's, and is put back.  If the program has lowered the hard
 * limit, the kernel may refuse to set `before`; then, too, the program's limit
 * stays.
 */
static void restore_limit(const struct rlimit *before,
			  const struct rlimit *raised)
{
	struct rlimit last = *raised, next = *before, was;

	while (!prlimit(0, RLIMIT_NOFILE, &next, &was) &&
	       !is_same_limit(&was, &last)) {
		last = next;
		next = was;
	}
}

/* Sends while the soft limit on open files is the hard limit.  The program
 * chose its soft limit for its own descriptors, and not for those that all
 * processes of the user have in flight. */
static ssize_t send_raised(int socket, const struct msghdr *m, int flags)
{
	struct rlimit is, most;
	ssize_t n;
	int err;

	errno = ETOOMANYREFS;
	if (getrlimit(RLIMIT_NOFILE, &is) || is.rlim_cur >= is.rlim_max)
		return -1;
	most = (struct rlimit){is.rlim_max, is.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &most))
		return -1;
	n = sendmsg(socket, m, flags);
	err = errno;
	restore_limit(&is, &most);
	errno = err;
	return n;
}

ssize_t scm_rights_send(int socket, const void *bytes, size_t size,
			const int *fds, size_t n, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(SCM_RIGHTS_MOST * sizeof(int))];
	} control = {0};
	struct iovec part = {(void *)(uintptr_t)bytes, size};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	CHECK(n <= SCM_RIGHTS_MOST);
	if (n) {
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	sent = sendmsg(socket, &m, flags | MSG_NOSIGNAL);
	return sent < 0 && errno == ETOOMANYREFS
		       ? send_raised(socket, &m, flags | MSG_NOSIGNAL)
		       : sent;
}

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
