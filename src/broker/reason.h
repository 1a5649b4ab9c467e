/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why adverbd could not be run, in words.  What it said itself, and its path,
 * are input: shown without control characters, and in part if they are long.
 * No state.
 */
#ifndef BROKER_REASON_H
#define BROKER_REASON_H

#include <stddef.h>

#define REASON_PATH 200 /* bytes of a path that are shown, */
#define REASON_TEXT 240 /* and of a reason */

struct proto;

/* The path, or its end. */
void reason_path(const char *path, char shown[REASON_PATH]);
/* execve has failed with this errno. */
void reason_exec(const char *path, int err, char text[REASON_TEXT]);
/* No process can be made: clone has failed with this errno. */
void reason_clone(int err, char text[REASON_TEXT]);
/* It has ended without serving, with these last words, if any: of a dynamic
 * loader, an interpreter, adverbd. */
void reason_words(const char *path, const char *words, size_t bytes,
		  char text[REASON_TEXT]);
/* It has introduced itself, and is of another version; "it", or who it is. */
void reason_version(const char *who, const struct proto *m, char *text,
		    size_t size);

#endif
