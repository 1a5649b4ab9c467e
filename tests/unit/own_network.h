/* SPDX-License-Identifier: BSD-2-Clause */
/* A network namespace of a test's own, in which all ports are free. */
#ifndef TESTS_UNIT_OWN_NETWORK_H
#define TESTS_UNIT_OWN_NETWORK_H

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Moves this thread to a new network namespace, and brings lo up there; an
 * ordinary user needs a new user namespace for that.  Returns whether lo is up
 * in the new namespace. */
static inline bool own_network_enter(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd;
	bool is_up;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	is_up = fd >= 0 && !ioctl(fd, SIOCSIFFLAGS, &lo);
	close(fd);
	return is_up;
}

#endif
