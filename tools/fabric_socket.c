/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric_socket.h"

#include "fabric/fabric_client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Is fd a regular file of this user?  In a folder such as /tmp another user may
 * have made the file, and could hold the file's lock for ever. */
static bool is_own_file(int fd)
{
	struct stat s;

	return !fstat(fd, &s) && S_ISREG(s.st_mode) && s.st_uid == geteuid();
}

/* Does the name still lead to the file fd? */
static bool is_named(int fd, const char *name)
{
	struct stat held, named;

	return !fstat(fd, &held) && !lstat(name, &named) &&
	       held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static int lock_once(int fd)
{
	if (!is_own_file(fd))
		return -EPERM;
	while (flock(fd, LOCK_EX))
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Makes the file if there is none, and waits until this process has the file's
 * lock.  A holder removes the file before it releases the lock, so the lock of
 * a file that is no longer at this name excludes nobody.  Returns a descriptor
 * or -errno. */
static int lock_file(const char *name)
{
	for (;;) {
		int fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			      0600);
		int err = fd < 0 ? -errno : lock_once(fd);

		if (fd < 0)
			return err;
		if (!err && is_named(fd, name))
			return fd;
		close(fd);
		if (err)
			return err;
	}
}

static void unlock_file(int fd, const char *name)
{
	unlink(name);
	flock(fd, LOCK_UN); /* a forked process may have a copy of fd */
	close(fd);
}

static int refuse_path(const char *path, int err)
{
	fprintf(stderr,
		"adverb: the fabric cannot listen at %s: %s; name another "
		"socket by --socket.\n",
		path, strerror(-err));
	return -1;
}

static int refuse_lock(const char *path, const char *name, int err)
{
	const char *why = err == -EPERM	  ? "it is no file of this user"
			  : err == -ELOOP ? "it is a symbolic link"
					  : strerror(-err);

	fprintf(stderr,
		"adverb: the fabric cannot listen at %s: the path's lock file "
		"%s cannot be locked: %s; name another socket by --socket.\n",
		path, name, why);
	return -1;
}

/* Is there a file at this path, and is it no socket?  A regular file refuses
 * connections as the socket of a killed fabric does. */
static bool is_other_file(const char *path)
{
	struct stat s;

	return !lstat(path, &s) && !S_ISSOCK(s.st_mode);
}

static int refuse_file(const char *path)
{
	fprintf(stderr,
		"adverb: the fabric cannot listen at %s: a file that is no "
		"socket has this name; remove it, or name another socket by "
		"--socket.\n",
		path);
	return -1;
}

/* Removes the socket of a fabric that was killed, which refuses connections.
 * Returns 0, also if the connection fails for another reason: bind_path then
 * finds out whether the path can be used; -EEXIST: a fabric, or another program
 * of this user, listens there; -ETIMEDOUT: a program listens there, and does
 * not answer; -EPERM: another user's program listens there. */
static int clear_path(const char *path)
{
	int other = fabric_client_connect(path, FABRIC_SOCKET_PATIENCE_MS);

	if (other == -ECONNREFUSED && !is_other_file(path))
		unlink(path);
	if (other < 0)
		return other == -ETIMEDOUT || other == -EPERM ? other : 0;
	close(other);
	return -EEXIST;
}

/* Says which program has the path.  err: the result of clear_path.  Returns -1.
 */
static int refuse_taken(const char *path, int err)
{
	if (err == -EEXIST)
		fprintf(stderr,
			"adverb: the fabric cannot listen at %s: a fabric, or "
			"another program of this user, listens there; end a "
			"fabric by adverb fabric --socket %s --stop, or name "
			"another socket by --socket.\n",
			path, path);
	else
		fprintf(stderr,
			"adverb: the fabric cannot listen at %s: %s listens "
			"there; %sname another socket by --socket.\n",
			path,
			err == -EPERM ? "a program of another user"
				      : "a program that does not answer",
			err == -EPERM ? "" : "end that program, or ");
	return -1;
}

/* Binds a new socket to the path, and listens.  Returns the socket, or -errno.
 */
static int bind_path(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	mode_t mask;
	int err;

	if (fd < 0)
		return -errno;
	mask = umask(0177);
	err = bind(fd, (const struct sockaddr *)address, sizeof(*address)) ||
			      listen(fd, 1024)
		      ? -errno
		      : 0;
	umask(mask);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Listens at the path.  Returns the socket, or -1 after a sentence on stderr.
 * The caller holds the lock of lock_file. */
static int take_path(const char *path, const struct sockaddr_un *address)
{
	int fd, err;

	if (is_other_file(path))
		return refuse_file(path);
	err = clear_path(path);
	if (err)
		return refuse_taken(path, err);
	fd = bind_path(address);
	return fd < 0 ? refuse_path(path, fd) : fd;
}

int fabric_socket_listen(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[PATH_MAX];
	int lock, fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return refuse_path(path, -ENAMETOOLONG);
	memcpy(address.sun_path, path, strlen(path));
	snprintf(name, sizeof(name), "%s.lock", path);
	lock = lock_file(name);
	if (lock < 0)
		return refuse_lock(path, name, lock);
	fd = take_path(path, &address);
	unlock_file(lock, name);
	return fd;
}
