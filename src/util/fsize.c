/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fsize.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SET_BYTES 8 /* of a set of signals */

void fsize_hold(struct fsize *f)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, &f->before);
}

void fsize_give(const struct fsize *f)
{
	const struct timespec now = {0};
	int saved = errno;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	/* the kernel sends it to the thread that made the call; the bare call,
	 * for libc's would let a cancelled thread end here */
	if (!sigismember(&f->before, SIGXFSZ))
		while (syscall(SYS_rt_sigtimedwait, &set, NULL, &now,
			       KERNEL_SET_BYTES) == SIGXFSZ)
			;
	pthread_sigmask(SIG_SETMASK, &f->before, NULL);
	errno = saved;
}
