/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/yield.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/poll_policy.h"
#include "util/monotonic.h"

/*
 * Beside threads that compute, sched_yield costs the caller the rest of its
 * time slice (Linux 6.18 and later), so a thread that polls would get a few
 * percent of the core.  A thread that sleeps keeps its share, and Linux wakes
 * it soon.
 */
uint64_t yield_core(void)
{
	static _Thread_local struct poll_crowd crowd
		__attribute__((tls_model("initial-exec")));
	static const long moment[2] = {0, 1}; /* seconds, ns */
	uint64_t began = monotonic_ns(), took;
	bool is_crowded = poll_policy_is_crowded(&crowd, began);
	int err = errno; /* a signal during the sleep sets EINTR */

	/* The C library's nanosleep is a cancellation point. */
	if (is_crowded)
		syscall(SYS_nanosleep, moment, NULL);
	else
		sched_yield();
	took = monotonic_ns() - began;
	if (!is_crowded)
		poll_policy_yielded(&crowd, began, took);
	errno = err;
	return took;
}
