/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files below an open folder.  A path is relative to the folder's descriptor
 * and has no "." or "..".  Each folder on the path is opened relative to the
 * folder before it; no symbolic link is followed, and no folder of another user
 * is entered.  So a file that is written or removed lies in the folder that was
 * opened, even if the folder has been renamed or its name replaced since.
 */
#ifndef UTIL_FOLDER_H
#define UTIL_FOLDER_H

#include <stdbool.h>

/* Opens the folder at `path` below `at`.  If `makes`, creates missing folders
 * (mode 0755).  Returns a descriptor, which the caller closes; -EPERM: a folder
 * on the path is another user's; or another -errno. */
int folder_open(int at, const char *path, bool makes);
/* Replaces the contents of file `name` in folder `at` by `text`, atomically by
 * rename, since another process may be reading the file.  Several threads and
 * processes may replace one file at the same time: the file then has the text
 * of one of them.  A process that is killed in this call may leave a file whose
 * name begins with "." and ends with "~".  Returns 0 or -errno; on an error the
 * old file is unchanged. */
int folder_put(int at, const char *name, const char *text);
/* Removes `name` from folder `at`: a file, or a folder with all its contents,
 * down to 12 folders deep.  A non-empty folder of another user stays. */
void folder_remove(int at, const char *name);
/* Removes all contents of the folder fd, down to 12 folders deep, and closes
 * fd.  Does nothing if fd is negative. */
void folder_empty(int fd);

#endif
