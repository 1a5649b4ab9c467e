/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fsize.h"

#include <errno.h>
#include <time.h>

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
	/* the kernel sends it to the thread that made the call */
	if (!sigismember(&f->before, SIGXFSZ))
		while (sigtimedwait(&set, NULL, &now) == SIGXFSZ)
			;
	pthread_sigmask(SIG_SETMASK, &f->before, NULL);
	errno = saved;
}
