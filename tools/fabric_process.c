/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_process.h"

#include "util/user_map.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux has this option since 6.5; older headers lack it. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Asks the kernel which process has connected, and as which user; false: the
 * kernel does not tell. */
static bool read_peer(int connection, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, peer, &length);
}

bool fabric_process_is_own(int connection)
{
	struct ucred peer;

	return read_peer(connection, &peer) && user_map_is_own(peer.uid);
}

int fabric_process_pid(int connection)
{
	struct ucred peer;

	return read_peer(connection, &peer) ? peer.pid : 0;
}

/* Is errno that of a process that has ended?  EINVAL and ENOENT: the pid has
 * become the id of a thread. */
static bool is_gone(void)
{
	return errno == ESRCH || errno == EINVAL || errno == ENOENT;
}

/* Does errno say that no descriptor or no memory is left? */
static bool is_short(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

/* Opens the process by its pid.  The kernel gives a pid to a second process
 * only after the first has ended.  So if the descriptor is that of a second
 * process, this process learns late of the end of the first, but the descriptor
 * is never readable while the first lives. */
static int open_pid(int connection)
{
	int pid = fabric_process_pid(connection);
	int fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd >= 0)
		return fd;
	if (pid && is_gone())
		return -ESRCH;
	return pid && is_short() ? -errno : -EOPNOTSUPP;
}

int fabric_process_open(int connection)
{
	socklen_t length = sizeof(int);
	int fd = -1;

	if (!getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &length))
		return fd;
	if (errno == ESRCH)
		return -ESRCH;
	return is_short() ? -errno : open_pid(connection);
}
