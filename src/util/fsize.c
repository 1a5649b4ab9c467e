/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fsize.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KERNEL_SET_BYTES 8 /* bytes of the kernel's sigset_t */

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
	/* The kernel sends SIGXFSZ to the thread that reached the limit, so no
	 * other thread can take the signal.  rt_sigtimedwait is called
	 * directly: libc's sigtimedwait is a cancellation point. */
	if (!sigismember(&f->before, SIGXFSZ))
		while (syscall(SYS_rt_sigtimedwait, &set, NULL, &now,
			       KERNEL_SET_BYTES) == SIGXFSZ)
			;
	pthread_sigmask(SIG_SETMASK, &f->before, NULL);
	errno = saved;
}
