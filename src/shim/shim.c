/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim: libadverb-shim.so, preloaded for programs that look for RDMA devices
 * under /sys and /dev themselves.  Each function below calls libc's function of
 * the same name with the path that path_turn returns.
 *
 * The functions may be called before main, inside malloc, in a signal handler
 * and on a small stack.  So they allocate nothing, take no lock of their own,
 * and use stack for a path only if the path may be replaced.  The first call of
 * each function calls dlsym, which takes a lock of the loader, and keeps the
 * address that dlsym returns; two threads that do so at once store the same
 * address.
 */
#include "shim/shim.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "shim/path.h"

/* Defines turned_##name, which calls libc's function with the path that
 * path_turn returns.  turned_##name is not inlined, so that a call whose path
 * cannot be replaced (path_may_turn) has no PATH_MAX bytes on its stack. */
#define TURNED(type, name, dir, parameters, ...)                               \
	SHIM_NEXT(name);                                                       \
	static __attribute__((noinline)) type turned_##name parameters         \
	{                                                                      \
		struct path room;                                              \
                                                                               \
		path = path_turn(dir, path, &room);                            \
		return next_##name(__VA_ARGS__);                               \
	}

/*
 * Defines the shim's function @name, which returns @type.  The function
 * replaces the argument named `path` and passes the other arguments on.  A
 * relative path begins at the folder @dir.  A later glibc may drop an old
 * function: if this libc has no function @name, the shim's function returns
 * @failed with errno ENOSYS.
 */
#define TURN_AT(type, failed, name, dir, parameters, ...)                      \
	type name parameters;                                                  \
	TURNED(type, name, dir, parameters, __VA_ARGS__)                       \
	SHIM type name parameters                                              \
	{                                                                      \
		if (!SHIM_FIND(name))                                          \
			return failed;                                         \
		if (path_may_turn(path))                                       \
			return turned_##name(__VA_ARGS__);                     \
		return next_##name(__VA_ARGS__);                               \
	}

/* TURN_AT for a call whose relative path begins at the working directory. */
#define TURN(type, failed, name, parameters, ...)                              \
	TURN_AT(type, failed, name, AT_FDCWD, parameters, __VA_ARGS__)

/* TURN_AT for a call of the open family: the program passes the argument `mode`
 * only if `flags` may create a file.  @parameters: those of the call;
 * @with_mode: the same with `mode` in place of the dots. */
#define TURN_OPEN(name, dir, parameters, with_mode, ...)                       \
	TURNED(int, name, dir, with_mode, __VA_ARGS__, mode)                   \
	SHIM int name parameters                                               \
	{                                                                      \
		mode_t mode = 0;                                               \
		va_list rest;                                                  \
                                                                               \
		if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {   \
			va_start(rest, flags);                                 \
			mode = va_arg(rest, mode_t);                           \
			va_end(rest);                                          \
		}                                                              \
		if (!SHIM_FIND(name))                                          \
			return -1;                                             \
		if (path_may_turn(path))                                       \
			return turned_##name(__VA_ARGS__, mode);               \
		return next_##name(__VA_ARGS__, mode);                         \
	}

/* clang-format off */
TURN_OPEN(open, AT_FDCWD, (const char *path, int flags, ...),
	  (const char *path, int flags, mode_t mode), path, flags)
TURN_OPEN(open64, AT_FDCWD, (const char *path, int flags, ...),
	  (const char *path, int flags, mode_t mode), path, flags)
TURN_OPEN(openat, dir, (int dir, const char *path, int flags, ...),
	  (int dir, const char *path, int flags, mode_t mode),
	  dir, path, flags)
TURN_OPEN(openat64, dir, (int dir, const char *path, int flags, ...),
	  (int dir, const char *path, int flags, mode_t mode),
	  dir, path, flags)

/* The functions that a program built with _FORTIFY_SOURCE calls in place of
 * open, realpath and readlink. */
TURN(int, -1, __open_2, (const char *path, int flags), path, flags)
TURN(int, -1, __open64_2, (const char *path, int flags), path, flags)
TURN_AT(int, -1, __openat_2, dir, (int dir, const char *path, int flags),
	dir, path, flags)
TURN_AT(int, -1, __openat64_2, dir, (int dir, const char *path, int flags),
	dir, path, flags)
TURN(char *, NULL, __realpath_chk,
     (const char *path, char *resolved, size_t size), path, resolved, size)
TURN(ssize_t, -1, __readlink_chk,
     (const char *path, char *text, size_t size, size_t room_size),
     path, text, size, room_size)
TURN_AT(ssize_t, -1, __readlinkat_chk, dir,
	(int dir, const char *path, char *text, size_t size, size_t room_size),
	dir, path, text, size, room_size)

TURN(FILE *, NULL, fopen, (const char *path, const char *mode), path, mode)
TURN(FILE *, NULL, fopen64, (const char *path, const char *mode), path, mode)
TURN(FILE *, NULL, freopen, (const char *path, const char *mode, FILE *file),
     path, mode, file)
TURN(FILE *, NULL, freopen64, (const char *path, const char *mode, FILE *file),
     path, mode, file)
TURN(DIR *, NULL, opendir, (const char *path), path)
TURN(int, -1, chdir, (const char *path), path)
TURN(int, -1, scandir,
     (const char *path, struct dirent ***names,
      int (*filter)(const struct dirent *),
      int (*order)(const struct dirent **, const struct dirent **)),
     path, names, filter, order)
TURN(int, -1, scandir64,
     (const char *path, struct dirent64 ***names,
      int (*filter)(const struct dirent64 *),
      int (*order)(const struct dirent64 **, const struct dirent64 **)),
     path, names, filter, order)
TURN_AT(int, -1, scandirat, dir,
	(int dir, const char *path, struct dirent ***names,
	 int (*filter)(const struct dirent *),
	 int (*order)(const struct dirent **, const struct dirent **)),
	dir, path, names, filter, order)
TURN_AT(int, -1, scandirat64, dir,
	(int dir, const char *path, struct dirent64 ***names,
	 int (*filter)(const struct dirent64 *),
	 int (*order)(const struct dirent64 **, const struct dirent64 **)),
	dir, path, names, filter, order)

/* If the path is replaced, these functions call the program's function `each`
 * with paths in the tree that path.h describes, not with paths in /sys or /dev.
 */
TURN(int, -1, ftw, (const char *path, __ftw_func_t each, int most),
     path, each, most)
TURN(int, -1, ftw64, (const char *path, __ftw64_func_t each, int most),
     path, each, most)
TURN(int, -1, nftw,
     (const char *path, __nftw_func_t each, int most, int flags),
     path, each, most, flags)
TURN(int, -1, nftw64,
     (const char *path, __nftw64_func_t each, int most, int flags),
     path, each, most, flags)

TURN(int, -1, access, (const char *path, int mode), path, mode)
TURN(int, -1, euidaccess, (const char *path, int mode), path, mode)
TURN(int, -1, eaccess, (const char *path, int mode), path, mode)
TURN_AT(int, -1, faccessat, dir,
	(int dir, const char *path, int mode, int flags),
	dir, path, mode, flags)

TURN(int, -1, stat, (const char *path, struct stat *st), path, st)
TURN(int, -1, lstat, (const char *path, struct stat *st), path, st)
TURN_AT(int, -1, fstatat, dir,
	(int dir, const char *path, struct stat *st, int flags),
	dir, path, st, flags)
TURN(int, -1, stat64, (const char *path, struct stat64 *st), path, st)
TURN(int, -1, lstat64, (const char *path, struct stat64 *st), path, st)
TURN_AT(int, -1, fstatat64, dir,
	(int dir, const char *path, struct stat64 *st, int flags),
	dir, path, st, flags)
TURN_AT(int, -1, statx, dir,
	(int dir, const char *path, int flags, unsigned mask, struct statx *stx),
	dir, path, flags, mask, stx)

TURN(int, -1, statfs, (const char *path, struct statfs *st), path, st)
TURN(int, -1, statfs64, (const char *path, struct statfs64 *st), path, st)
TURN(int, -1, statvfs, (const char *path, struct statvfs *st), path, st)
TURN(int, -1, statvfs64, (const char *path, struct statvfs64 *st), path, st)
TURN(long, -1, pathconf, (const char *path, int name), path, name)
TURN(int, -1, inotify_add_watch, (int fd, const char *path, uint32_t mask),
     fd, path, mask)

/* The functions that programs built before glibc 2.33 call for stat. */
TURN(int, -1, __xstat, (int version, const char *path, struct stat *st),
     version, path, st)
TURN(int, -1, __lxstat, (int version, const char *path, struct stat *st),
     version, path, st)
TURN_AT(int, -1, __fxstatat, dir,
	(int version, int dir, const char *path, struct stat *st, int flags),
	version, dir, path, st, flags)
TURN(int, -1, __xstat64, (int version, const char *path, struct stat64 *st),
     version, path, st)
TURN(int, -1, __lxstat64, (int version, const char *path, struct stat64 *st),
     version, path, st)
TURN_AT(int, -1, __fxstatat64, dir,
	(int version, int dir, const char *path, struct stat64 *st, int flags),
	version, dir, path, st, flags)

TURN(ssize_t, -1, getxattr,
     (const char *path, const char *name, void *value, size_t size),
     path, name, value, size)
TURN(ssize_t, -1, lgetxattr,
     (const char *path, const char *name, void *value, size_t size),
     path, name, value, size)
TURN(ssize_t, -1, listxattr, (const char *path, char *names, size_t size),
     path, names, size)
TURN(ssize_t, -1, llistxattr, (const char *path, char *names, size_t size),
     path, names, size)

TURN(char *, NULL, realpath, (const char *path, char *resolved),
     path, resolved)
TURN(char *, NULL, canonicalize_file_name, (const char *path), path)
TURN(ssize_t, -1, readlink, (const char *path, char *text, size_t size),
     path, text, size)
TURN_AT(ssize_t, -1, readlinkat, dir,
	(int dir, const char *path, char *text, size_t size),
	dir, path, text, size)
/* clang-format on */
