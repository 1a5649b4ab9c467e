/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ldcache: finds the file that the dynamic loader loads as a library for a
 * program without a search path of its own: by /etc/ld.so.cache, in the format
 * that glibc has written since 2.2, and in the loader's own folders.
 *
 * Reads files, keeps no state; no lock.
 */
#ifndef TOOLS_LDCACHE_H
#define TOOLS_LDCACHE_H

#include <limits.h>
#include <stdbool.h>

#define LDCACHE_FILE "/etc/ld.so.cache"

/* Finds the first file that @cache names for @library and that is a library for
 * this processor.  True: the file's path is in @path of PATH_MAX bytes. */
bool ldcache_read(const char *cache, const char *library, char *path);

/* Finds @library as the loader of this process does: in LD_LIBRARY_PATH and the
 * loader's own folders, then by LDCACHE_FILE.  True: the library's path is in
 * @path of PATH_MAX bytes. */
bool ldcache_find(const char *library, char *path);

#endif
