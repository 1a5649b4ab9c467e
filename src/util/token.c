/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/token.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/fd_identity.h"

#ifndef RWF_NOWAIT /* <linux/fs.h> has it, but not every <sys/uio.h> */
#define RWF_NOWAIT 8
#endif

/* The system calls are made without libc's functions, which are cancellation
 * points. */

void token_put(int fd)
{
	token_put_all(fd, 1);
}

void token_put_all(int fd, uint64_t count)
{
	/* Except for EINTR, a write to an eventfd fails only if the eventfd
	 * would then have more than 2^64 - 2 tokens. */
	while (fd_identity_holds(fd) &&
	       syscall(SYS_write, fd, &count, sizeof(count)) < 0 &&
	       errno == EINTR)
		;
}

void token_take_back(int fd)
{
	uint64_t token;
	struct iovec io = {&token, sizeof(token)};

	if (fd_identity_holds(fd))
		syscall(SYS_preadv2, fd, &io, 1, -1L, -1L, RWF_NOWAIT);
}
