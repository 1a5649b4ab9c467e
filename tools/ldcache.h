/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ldcache: finds the file of a library as the dynamic loader does for a program
 * without DT_RPATH and DT_RUNPATH: in LD_LIBRARY_PATH, in /etc/ld.so.cache (the
 * format that glibc has written since 2.2) and in the loader's default folders.
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

/* Finds @library in LD_LIBRARY_PATH, then by @cache, then in all folders that
 * the loader searches for adverb itself (dlinfo(3)): those of LD_LIBRARY_PATH,
 * where the loader, unlike the first step, has replaced $ORIGIN and the like;
 * those of adverb's DT_RUNPATH, if there is one; and the loader's default
 * folders.  True: the library's path is in @path of PATH_MAX bytes. */
bool ldcache_find(const char *cache, const char *library, char *path);

#endif
