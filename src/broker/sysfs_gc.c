/* SPDX-License-Identifier: BSD-2-Clause */
/* Removes trees that nobody uses; see sysfs_gc.h. */
#include "broker/sysfs_gc.h"

#include "broker/proto.h"
#include "util/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define PREFIX "sysfs-"
/* the beginning of the new name of a tree that is being removed */
#define OLD_PREFIX ".gone-"
/* how many entries one call looks at, at most: a client may wait meanwhile */
#define MOST 32

/* Removes a folder whose contents all belong to this user. */
static void remove_own(int beside, const char *name)
{
	int fd = folder_open(beside, name, false);

	if (fd < 0)
		return;
	folder_empty(fd);
	unlinkat(beside, name, AT_REMOVEDIR);
}

/* Is a process other than this one in the network namespace with that inode
 * number?  Finds only processes whose namespace the kernel shows to this
 * process. */
static bool has_process(unsigned long long namespace)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		char path[300];
		struct stat s;

		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%s/ns/net", e->d_name);
		found = !stat(path, &s) && s.st_ino == namespace;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Does the folder belong to this user, and hold a tree? */
static bool is_tree(int fd)
{
	struct stat s;

	return !fstat(fd, &s) && s.st_uid == geteuid() &&
	       !fstatat(fd, "class/infiniband_verbs", &s, AT_SYMLINK_NOFOLLOW);
}

/* Removes the tree of this name, if nobody uses it.  The tree is renamed first,
 * so that a process that comes later makes a new one. */
static void sweep_tree(int beside, const char *name,
		       unsigned long long namespace)
{
	int fd = openat(beside, name, FOLDER);
	char gone[64];

	snprintf(gone, sizeof(gone), OLD_PREFIX "%llu-%d", namespace,
		 (int)getpid());
	if (fd >= 0 && is_tree(fd) && !flock(fd, LOCK_EX | LOCK_NB) &&
	    !has_process(namespace) && !renameat(beside, name, beside, gone))
		remove_own(beside, gone);
	if (fd >= 0)
		close(fd);
}

static bool is_folder(int fd, int beside, const char *name)
{
	struct stat a, b;

	return !fstat(fd, &a) &&
	       !fstatat(beside, name, &b, AT_SYMLINK_NOFOLLOW) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Opens the folder in which the tree of tree_fd lies, and writes the name of
 * this namespace's tree.  Returns the descriptor; -1: the folder cannot be
 * opened, or the tree has another name: a user may choose one. */
static int open_beside(int tree_fd, char *name, size_t size)
{
	int top = openat(tree_fd, "../..", FOLDER);
	int beside = top < 0 ? -1 : openat(top, "..", FOLDER);

	snprintf(name, size, PREFIX "%llu", proto_namespace());
	if (beside >= 0 && !is_folder(top, beside, name)) {
		close(beside);
		beside = -1;
	}
	if (top >= 0)
		close(top);
	return beside;
}

void sysfs_gc_own(int tree_fd)
{
	char name[64];
	int beside = open_beside(tree_fd, name, sizeof(name));

	if (beside < 0)
		return;
	sweep_tree(beside, name, proto_namespace());
	close(beside);
}

/* Removes one entry: an unused tree, or what is left of a tree if a broker was
 * killed while it removed the tree. */
static void sweep_entry(int beside, const char *name, const char *ours)
{
	unsigned long long namespace, fabric;
	int pid;
	char end;

	if (sscanf(name, OLD_PREFIX "%llu-%d%c", &namespace, &pid, &end) == 2)
		remove_own(beside, name);
	else if (strcmp(name, ours) != 0 &&
		 (sscanf(name, PREFIX "%llu%c", &namespace, &end) == 1 ||
		  sscanf(name, PREFIX "%llu-%16llx%c", &namespace, &fabric,
			 &end) == 2))
		sweep_tree(beside, name, namespace);
}

void sysfs_gc_others(int tree_fd)
{
	char name[64];
	int beside = open_beside(tree_fd, name, sizeof(name));
	DIR *dir = beside < 0 ? NULL : fdopendir(beside);
	struct dirent *e;

	if (!dir && beside >= 0)
		close(beside);
	for (int i = 0; dir && i < MOST && (e = readdir(dir)); i++)
		sweep_entry(beside, e->d_name, name);
	if (dir)
		closedir(dir);
}
