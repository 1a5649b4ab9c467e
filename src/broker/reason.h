/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sentences about why adverbd could not be run.  The output and the path of
 * adverbd are not trusted: they are shown without control characters, and in
 * part if they are long.  No state.
 */
#ifndef BROKER_REASON_H
#define BROKER_REASON_H

#include <stddef.h>

#define REASON_PATH 200 /* bytes of a path that are shown */
#define REASON_TEXT 240 /* bytes of a reason */

struct proto;

/* Writes the path, or its end, to shown. */
void reason_path(const char *path, char shown[REASON_PATH]);
/* Says why execve failed, by its errno. */
void reason_exec(const char *path, int err, char text[REASON_TEXT]);
/* Says why no process can be made, by the errno of clone. */
void reason_clone(int err, char text[REASON_TEXT]);
/* Says why adverbd ended without serving, by the last line that adverbd, its
 * dynamic loader or its interpreter has written, if any. */
void reason_words(const char *path, const char *words, size_t bytes,
		  char text[REASON_TEXT]);
/* Says of which version the broker is that has introduced itself by m; `who`
 * names that broker in the sentence. */
void reason_version(const char *who, const struct proto *m, char *text,
		    size_t size);

#endif
