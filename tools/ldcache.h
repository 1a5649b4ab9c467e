/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ldcache: where the dynamic loader finds a library for programs that bring no
 * LD_LIBRARY_PATH and no search path of their own: /etc/ld.so.cache, in the
 * form that glibc has written since 2.2, then the loader's own folders.
 *
 * Pure but for reading files; no lock.
 */
#ifndef TOOLS_LDCACHE_H
#define TOOLS_LDCACHE_H

#include <limits.h>
#include <stdbool.h>

#define LDCACHE_FILE "/etc/ld.so.cache"

/* The file that @cache has first for @library and that is there, for programs
 * of our processor, in @path of PATH_MAX bytes. */
bool ldcache_read(const char *cache, const char *library, char *path);

/* The same as the loader of this process finds it: in LD_LIBRARY_PATH, in the
 * cache, in its own folders. */
bool ldcache_find(const char *library, char *path);

#endif
