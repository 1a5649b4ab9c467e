/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files below a folder that is open.  A path is relative to the descriptor, has
 * no "." and "..", and each folder on it is opened from the one before: no link
 * is followed, and no folder of another user is entered.  So what is written or
 * removed lies in the folder that was opened, whatever its name stands for by
 * now.
 */
#ifndef UTIL_FOLDER_H
#define UTIL_FOLDER_H

#include <stdbool.h>

/* The folder at path, where makes with those that are missing (0755); a
 * descriptor, which the caller closes, or -errno: -EPERM for another user's. */
int folder_open(int at, const char *path, bool makes);
/* The file of this name in the folder itself gets the text, whole or not at
 * all, since somebody may be reading it.  0 or -errno. */
int folder_put(int at, const char *name, const char *text);
/* Whatever has this name in the folder itself goes, with all that is in it.
 * Another user's folder stays, unless it is empty. */
void folder_remove(int at, const char *name);
/* Its contents go; fd is taken. */
void folder_empty(int fd);

#endif
