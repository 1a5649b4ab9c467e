/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shim: libadverb-shim.so, preloaded for programs that look for RDMA devices
 * under /sys and /dev themselves.  Each function below is libc's of the same
 * name with its path turned by path_turn, no more.
 *
 * It may be called before main, inside malloc and in a signal handler, so it
 * allocates nothing and takes no lock.  dlsym's answer is kept in a word; two
 * threads that look it up at once store the same value.
 */
#include "path.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SHIM __attribute__((visibility("default")))

/* The next definition of @name after ours, in @real. */
#define NEXT(name)                                                             \
	static __typeof__(name) *real;                                         \
	if (!real)                                                             \
	*(void **)&real = dlsym(RTLD_NEXT, #name)

/*
 * One call whose arguments pass unchanged but for @path, which is named so in
 * the list.  Old entry points that this libc lacks answer ENOSYS.
 */
#define TURN(type, failed, name, parameters, ...)                              \
	type name parameters;                                                  \
	SHIM type name parameters                                              \
	{                                                                      \
		struct path room;                                              \
		NEXT(name);                                                    \
                                                                               \
		path = path_turn(path, &room);                                 \
		if (real)                                                      \
			return real(__VA_ARGS__);                              \
		errno = ENOSYS;                                                \
		return failed;                                                 \
	}

/* The same for the open family, whose mode is there only to create. */
#define TURN_OPEN(name, parameters, ...)                                       \
	SHIM int name parameters                                               \
	{                                                                      \
		struct path room;                                              \
		mode_t mode = 0;                                               \
		va_list rest;                                                  \
		NEXT(name);                                                    \
                                                                               \
		if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {   \
			va_start(rest, flags);                                 \
			mode = va_arg(rest, mode_t);                           \
			va_end(rest);                                          \
		}                                                              \
		path = path_turn(path, &room);                                 \
		return real(__VA_ARGS__, mode);                                \
	}

/* clang-format off */
TURN_OPEN(open, (const char *path, int flags, ...), path, flags)
TURN_OPEN(open64, (const char *path, int flags, ...), path, flags)
TURN_OPEN(openat, (int dir, const char *path, int flags, ...),
	  dir, path, flags)
TURN_OPEN(openat64, (int dir, const char *path, int flags, ...),
	  dir, path, flags)

/* What _FORTIFY_SOURCE makes of them. */
TURN(int, -1, __open_2, (const char *path, int flags), path, flags)
TURN(int, -1, __open64_2, (const char *path, int flags), path, flags)
TURN(int, -1, __openat_2, (int dir, const char *path, int flags),
     dir, path, flags)
TURN(int, -1, __openat64_2, (int dir, const char *path, int flags),
     dir, path, flags)
TURN(char *, NULL, __realpath_chk,
     (const char *path, char *resolved, size_t size), path, resolved, size)
TURN(ssize_t, -1, __readlink_chk,
     (const char *path, char *text, size_t size, size_t room_size),
     path, text, size, room_size)
TURN(ssize_t, -1, __readlinkat_chk,
     (int dir, const char *path, char *text, size_t size, size_t room_size),
     dir, path, text, size, room_size)

TURN(FILE *, NULL, fopen, (const char *path, const char *mode), path, mode)
TURN(FILE *, NULL, fopen64, (const char *path, const char *mode), path, mode)
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

TURN(int, -1, access, (const char *path, int mode), path, mode)
TURN(int, -1, euidaccess, (const char *path, int mode), path, mode)
TURN(int, -1, eaccess, (const char *path, int mode), path, mode)
TURN(int, -1, faccessat, (int dir, const char *path, int mode, int flags),
     dir, path, mode, flags)

TURN(int, -1, stat, (const char *path, struct stat *st), path, st)
TURN(int, -1, lstat, (const char *path, struct stat *st), path, st)
TURN(int, -1, fstatat, (int dir, const char *path, struct stat *st, int flags),
     dir, path, st, flags)
TURN(int, -1, stat64, (const char *path, struct stat64 *st), path, st)
TURN(int, -1, lstat64, (const char *path, struct stat64 *st), path, st)
TURN(int, -1, fstatat64,
     (int dir, const char *path, struct stat64 *st, int flags),
     dir, path, st, flags)
TURN(int, -1, statx,
     (int dir, const char *path, int flags, unsigned mask, struct statx *stx),
     dir, path, flags, mask, stx)

TURN(int, -1, statfs, (const char *path, struct statfs *st), path, st)
TURN(int, -1, statfs64, (const char *path, struct statfs64 *st), path, st)
TURN(int, -1, statvfs, (const char *path, struct statvfs *st), path, st)
TURN(int, -1, statvfs64, (const char *path, struct statvfs64 *st), path, st)
TURN(long, -1, pathconf, (const char *path, int name), path, name)
TURN(int, -1, inotify_add_watch, (int fd, const char *path, uint32_t mask),
     fd, path, mask)

/* What stat was called before glibc 2.33. */
TURN(int, -1, __xstat, (int version, const char *path, struct stat *st),
     version, path, st)
TURN(int, -1, __lxstat, (int version, const char *path, struct stat *st),
     version, path, st)
TURN(int, -1, __fxstatat,
     (int version, int dir, const char *path, struct stat *st, int flags),
     version, dir, path, st, flags)
TURN(int, -1, __xstat64, (int version, const char *path, struct stat64 *st),
     version, path, st)
TURN(int, -1, __lxstat64, (int version, const char *path, struct stat64 *st),
     version, path, st)
TURN(int, -1, __fxstatat64,
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
TURN(ssize_t, -1, readlinkat,
     (int dir, const char *path, char *text, size_t size),
     dir, path, text, size)
/* clang-format on */
