/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/token.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/fd_identity.h"

#ifndef RWF_NOWAIT /* <linux/fs.h> has it, but not every <sys/uio.h> */
#define RWF_NOWAIT 8
#endif

/* Reads and writes are system calls without libc's functions, which are
 * cancellation points. */

void token_put(int fd)
{
	token_put_all(fd, 1);
}

void token_put_all(int fd, uint64_t count)
{
	/* A write to an eventfd waits, or fails with another error than EINTR,
	 * only if the eventfd would then have more than 2^64 - 2 tokens. */
	while (fd_identity_holds(fd) &&
	       syscall(SYS_write, fd, &count, sizeof(count)) < 0 &&
	       errno == EINTR)
		;
}

/* Does the work of token_take_back by O_NONBLOCK.  Without this flag the
 * read(2) could wait, since another thread may read the token first. */
static void take_by_flag(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	bool blocks = flags >= 0 && !(flags & O_NONBLOCK);
	uint64_t token;

	if (flags < 0 || (blocks && fcntl(fd, F_SETFL, flags | O_NONBLOCK)))
		return;
	syscall(SYS_read, fd, &token, sizeof(token));
	if (blocks)
		fcntl(fd, F_SETFL, flags);
}

void token_take_back(int fd)
{
	uint64_t token;
	struct iovec io = {&token, sizeof(token)};

	if (!fd_identity_holds(fd))
		return;
	/* An eventfd has RWF_NOWAIT since Linux 5.8. */
	if (syscall(SYS_preadv2, fd, &io, 1, -1L, -1L, RWF_NOWAIT) < 0 &&
	    errno != EAGAIN)
		take_by_flag(fd);
}

bool token_reads_wait(int fd)
{
	int before = errno, flags = fcntl(fd, F_GETFL);

	errno = before;
	return flags >= 0 && !(flags & O_NONBLOCK);
}
