/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/folder.h"
#include "util/random.h"
#include "util/write_signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define DEPTH  12 /* the deepest folder that empty_below empties */
#define TRIES  64 /* the most names that create_file tries */

/* Opens a folder.  Returns a descriptor; -EPERM: the folder is another user's;
 * or another -errno. */
static int open_own(int at, const char *name)
{
	int fd = openat(at, name, FOLDER), err = 0;
	struct stat s;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &s))
		err = -errno;
	else if (s.st_uid != geteuid())
		err = -EPERM;
	if (!err)
		return fd;
	close(fd);
	return err;
}

static int enter_one(int at, const char *name, bool makes)
{
	int fd = open_own(at, name);

	if (fd != -ENOENT || !makes)
		return fd;
	if (mkdirat(at, name, 0755) && errno != EEXIST)
		return -errno;
	return open_own(at, name);
}

int folder_open(int at, const char *path, bool makes)
{
	int fd = openat(at, ".", FOLDER);

	if (fd < 0)
		return -errno;
	while (fd >= 0 && *path) {
		char name[NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		int before = fd;

		fd = -ENAMETOOLONG;
		if (len < sizeof(name)) {
			memcpy(name, path, len);
			name[len] = '\0';
			fd = enter_one(before, name, makes);
		}
		close(before);
		path += len + (path[len] == '/');
	}
	return fd;
}

/*
 * Creates a temporary file with a new name, and stores the name.  With O_EXCL
 * no two writers have the same temporary file: otherwise one of them could
 * rename the text of the other, or a part of it.  The name has a random number,
 * because the process ID is not unique here: all threads of the process have
 * it, and so may a process of another PID namespace that shares the folder.  If
 * the kernel gives no random number, the function tries the numbers from 0 on.
 */
static int create_file(int at, const char *name, char temp[NAME_MAX + 1])
{
	const int how = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = -1;

	for (uint64_t i = 0; i < TRIES; i++) {
		uint64_t number;

		if (!random_fill(&number, sizeof(number), false))
			number = i;
		snprintf(temp, NAME_MAX + 1, ".%.200s.%" PRIx64 "~", name,
			 number);
		fd = openat(at, temp, how, 0644);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd;
}

int folder_put(int at, const char *name, const char *text)
{
	char temp[NAME_MAX + 1];
	size_t len = strlen(text);
	struct write_signals held;
	int fd, err = 0;

	fd = create_file(at, name, temp);
	if (fd < 0)
		return -errno;
	write_signals_hold(&held);
	errno = EIO; /* a short write sets no errno */
	if (write(fd, text, len) != (ssize_t)len ||
	    renameat(at, temp, at, name)) {
		err = -errno;
		unlinkat(at, temp, 0);
	}
	write_signals_give(&held);
	close(fd);
	return err;
}

static void empty_below(int fd, int depth)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && (e = readdir(dir))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (!unlinkat(fd, e->d_name, 0) || !depth)
			continue;
		empty_below(open_own(fd, e->d_name), depth - 1);
		unlinkat(fd, e->d_name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
}

void folder_empty(int fd)
{
	empty_below(fd, DEPTH);
}

void folder_remove(int at, const char *name)
{
	if (!unlinkat(at, name, 0))
		return;
	folder_empty(open_own(at, name));
	unlinkat(at, name, AT_REMOVEDIR);
}
