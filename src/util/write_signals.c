/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/write_signals.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/bits.h"

#define KERNEL_SET_BYTES 8 /* bytes of the kernel's sigset_t */

static const int held[] = {SIGPIPE, SIGXFSZ};

void write_signals_hold(struct write_signals *s)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_COUNT(held); i++)
		sigaddset(&set, held[i]);
	pthread_sigmask(SIG_BLOCK, &set, &s->before);
}

void write_signals_give(const struct write_signals *s)
{
	const struct timespec now = {0};
	int saved = errno;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_COUNT(held); i++)
		if (!sigismember(&s->before, held[i]))
			sigaddset(&set, held[i]);
	/* The kernel sends both signals to the thread that has made the system
	 * call, so no other thread can take them.  rt_sigtimedwait is called
	 * directly: libc's sigtimedwait is a cancellation point. */
	while (syscall(SYS_rt_sigtimedwait, &set, NULL, &now,
		       KERNEL_SET_BYTES) > 0)
		;
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
	errno = saved;
}
