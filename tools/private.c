/* SPDX-License-Identifier: BSD-2-Clause */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int say_forbidden(const char *what, int error)
{
	fprintf(stderr,
		"adverb: no private network namespace: %s: %s; look at the "
		"sysctls user.max_user_namespaces, user.max_net_namespaces, "
		"kernel.unprivileged_userns_clone and "
		"kernel.apparmor_restrict_unprivileged_userns, and at the "
		"seccomp profile of a container.\n",
		what, strerror(error));
	return -1;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

/* user_namespaces(7): the groups first, or the kernel takes no map of them. */
static int keep_numbers(uid_t user, gid_t group)
{
	char map[32];
	int error = write_text("/proc/self/setgroups", "deny");

	snprintf(map, sizeof(map), "%u %u 1", (unsigned)user, (unsigned)user);
	if (!error)
		error = write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", (unsigned)group, (unsigned)group);
	if (!error)
		error = write_text("/proc/self/gid_map", map);
	return error;
}

static int raise_loopback(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = 0;

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error;
}

int private_enter(void)
{
	uid_t user = geteuid();
	gid_t group = getegid();
	int error = 0;

	if (unshare(CLONE_NEWNET)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			return say_forbidden("it cannot be made", errno);
		error = keep_numbers(user, group);
	}
	if (error)
		return say_forbidden("the user's number cannot be kept",
				     -error);
	error = raise_loopback();
	if (error)
		return say_forbidden("its loopback cannot be used", -error);
	return 0;
}
