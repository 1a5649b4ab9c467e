/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glob(3).  The glob of libc calls the opendir and the stat of libc directly,
 * so that no preloaded function replaces them.  If a pattern may name RDMA
 * devices, the shim tells glob to call the shim's functions instead
 * (GLOB_ALTDIRFUNC).
 */
#include "shim/path.h"
#include "shim/shim.h"

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

static void *open_folder(const char *path)
{
	return opendir(path);
}

static void close_folder(void *folder)
{
	closedir(folder);
}

static struct dirent *next_entry(void *folder)
{
	return readdir(folder);
}

static struct dirent64 *next_entry64(void *folder)
{
	return readdir64(folder);
}

static int stat_path(const char *path, struct stat *st)
{
	return stat(path, st);
}

static int stat_link(const char *path, struct stat *st)
{
	return lstat(path, st);
}

static int stat_path64(const char *path, struct stat64 *st)
{
	return stat64(path, st);
}

static int stat_link64(const char *path, struct stat64 *st)
{
	return lstat64(path, st);
}

/* Returns whether glob has to call the shim's functions.  found is the glob_t
 * or glob64_t of the program; if the program passes NULL, libc's glob fails. */
static bool may_replace(const char *pattern, int flags, const void *found)
{
	return found && !(flags & GLOB_ALTDIRFUNC) && path_may_turn(pattern);
}

SHIM_NEXT(glob);
SHIM_NEXT(glob64);

SHIM int glob(const char *pattern, int flags,
	      int (*failed)(const char *path, int err), glob_t *found)
{
	if (!SHIM_FIND(glob))
		return GLOB_ABORTED;
	if (may_replace(pattern, flags, found)) {
		flags |= GLOB_ALTDIRFUNC;
		found->gl_opendir = open_folder;
		found->gl_closedir = close_folder;
		found->gl_readdir = next_entry;
		found->gl_stat = stat_path;
		found->gl_lstat = stat_link;
	}
	return next_glob(pattern, flags, failed, found);
}

SHIM int glob64(const char *pattern, int flags,
		int (*failed)(const char *path, int err), glob64_t *found)
{
	if (!SHIM_FIND(glob64))
		return GLOB_ABORTED;
	if (may_replace(pattern, flags, found)) {
		flags |= GLOB_ALTDIRFUNC;
		found->gl_opendir = open_folder;
		found->gl_closedir = close_folder;
		found->gl_readdir = next_entry64;
		found->gl_stat = stat_path64;
		found->gl_lstat = stat_link64;
	}
	return next_glob64(pattern, flags, failed, found);
}
