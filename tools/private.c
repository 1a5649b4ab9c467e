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

static int say_forbidden(const char *what, int err)
{
	fprintf(stderr,
		"adverb: no private network namespace: %s: %s; look at the "
		"sysctls user.max_user_namespaces, user.max_net_namespaces, "
		"kernel.unprivileged_userns_clone and "
		"kernel.apparmor_restrict_unprivileged_userns, and at the "
		"seccomp profile of a container.\n",
		what, strerror(err));
	return -1;
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

/* user_namespaces(7): without "deny" the kernel accepts no gid_map. */
static int keep_ids(uid_t user, gid_t group)
{
	char map[32];
	int err = write_text("/proc/self/setgroups", "deny");

	snprintf(map, sizeof(map), "%u %u 1", (unsigned)user, (unsigned)user);
	if (!err)
		err = write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", (unsigned)group, (unsigned)group);
	if (!err)
		err = write_text("/proc/self/gid_map", map);
	return err;
}

static int raise_loopback(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), err = 0;

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

int private_enter(void)
{
	uid_t user = geteuid();
	gid_t group = getegid();
	int err = 0;

	if (unshare(CLONE_NEWNET)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
			return say_forbidden("unshare fails", errno);
		err = keep_ids(user, group);
	}
	if (err)
		return say_forbidden(
			"a new user namespace cannot keep the user's ID", -err);
	err = raise_loopback();
	if (err)
		return say_forbidden("the loopback interface cannot be used",
				     -err);
	return 0;
}
