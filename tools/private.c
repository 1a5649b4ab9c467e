/* SPDX-License-Identifier: BSD-2-Clause */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

/* Maps the user and the group to themselves in a new user namespace.  Without
 * "deny" the kernel accepts no gid_map (user_namespaces(7)).  Returns 0 or
 * -errno. */
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

/*
 * Lets the programs that this process executes keep the capabilities over the
 * new network namespace: to make and configure interfaces, and to use raw
 * sockets.  execve(2) takes capabilities away from a user other than 0, except
 * for those that are inheritable and ambient (capabilities(7)).
 */
static int keep_rights(void)
{
	static const int kept[] = {CAP_NET_ADMIN, CAP_NET_RAW};
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		data[CAP_TO_INDEX(kept[i])].inheritable |= CAP_TO_MASK(kept[i]);
	if (syscall(SYS_capset, &head, data))
		return -errno;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0))
			return -errno;
	return 0;
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
		if (err)
			return say_forbidden("a new user namespace cannot keep "
					     "the user's ID",
					     -err);
		err = keep_rights();
	}
	if (err)
		return say_forbidden("programs cannot keep the rights over the "
				     "network namespace",
				     -err);
	err = raise_loopback();
	if (err)
		return say_forbidden("the loopback interface cannot be used",
				     -err);
	return 0;
}
