/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of the harnesses of the broker and of its client.  Each of
 * them runs in a network namespace of its own, moves its clock, and sends
 * messages with descriptors.
 */
#ifndef FUZZ_FUZZ_SOCKET_H
#define FUZZ_FUZZ_SOCKET_H

#include "descriptors.h"
#include "fuzz.h"
#include "input.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "util/scm_rights.h"

#define SOCKET_MAX_FDS 16 /* descriptors of one message */

/* How far CLOCK_MONOTONIC is ahead of the kernel's. */
static uint64_t skipped_ms;

/* Replaces the function of libc in the whole program: CLOCK_MONOTONIC is
 * skipped_ms ahead of the kernel's.  Other clocks are the kernel's, because
 * libFuzzer measures by CLOCK_REALTIME how long the whole run and each input
 * take. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	int err = (int)syscall(SYS_clock_gettime, id, t);

	if (id != CLOCK_MONOTONIC)
		return err;
	t->tv_nsec += (long)(skipped_ms % 1000) * 1000000;
	t->tv_sec += (time_t)(skipped_ms / 1000) + t->tv_nsec / 1000000000;
	t->tv_nsec %= 1000000000;
	return err;
}

/* Makes a network namespace for this process, or ends the process with status
 * 77 if the kernel refuses that.  Runs before main, because libFuzzer starts
 * threads, and a process with several threads cannot make a user namespace. */
__attribute__((constructor)) static void enter_namespace(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) {
		puts("skipped: no network namespace of our own");
		fflush(stdout);
		_exit(77);
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	FUZZ_REQUIRE(fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo));
	close(fd);
}

/* Sends one message with n descriptors, at most SOCKET_MAX_FDS, which stay the
 * caller's.  Sends nothing if the peer has closed its socket, or if the socket
 * is full. */
static inline void send_with(int socket, const void *bytes, size_t size,
			     const int *fds, size_t n)
{
	FUZZ_REQUIRE(n <= SOCKET_MAX_FDS);
	scm_rights_send(socket, bytes, size, fds, n, MSG_DONTWAIT);
}

#endif
