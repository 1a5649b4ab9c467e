/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reasons why adverbd could not be run, as clauses without a full stop; names
 * of processes; and the versions of a broker and this library.  The output, the
 * path and the version of adverbd are not trusted: they are shown without
 * control characters, and only in part if they are long.  No state.
 */
#ifndef BROKER_REASON_H
#define BROKER_REASON_H

#include <stddef.h>
#include <sys/types.h>

#define REASON_PATH    200 /* bytes of a path that is shown, with the final 0 */
#define REASON_TEXT    240 /* bytes of a reason, with the final 0 */
#define REASON_PROCESS 64  /* bytes of a process's name, with the final 0 */

struct proto;

/* Writes the path to shown; if the path is too long, "..." and its end. */
void reason_path(const char *path, char shown[REASON_PATH]);
/* Writes why execve of path has failed; err: its errno. */
void reason_exec(const char *path, int err, char text[REASON_TEXT]);
/* Writes why no process can be made; err: the errno of clone. */
void reason_clone(int err, char text[REASON_TEXT]);
/*
 * Writes why adverbd has ended without serving.  words: the last `bytes` bytes
 * that adverbd, its dynamic loader or its interpreter has written.  The reason
 * is their last line that is not blank, without "PATH: " or "adverbd: " at its
 * beginning; PATH stands for `path`, the path of adverbd.
 */
void reason_words(const char *path, const char *words, size_t bytes,
		  char text[REASON_TEXT]);
/* Writes why no broker can be reached; err: the errno of connect(2), or EAGAIN
 * if another process has to start a broker.  Unlike the other reasons, this is
 * a whole sentence. */
void reason_unreached(int err, char text[REASON_TEXT]);
/* Writes the name of a process.  pid, user: as SO_PEERCRED gives them; pid 0:
 * the process has no number in this PID namespace. */
void reason_process(pid_t pid, uid_t user, char text[REASON_PROCESS]);
/* Writes to text, of size bytes, the version of the broker that has introduced
 * itself by m, and the version of this library.  who: the words that name the
 * broker, as the subject of the sentence. */
void reason_version(const char *who, const struct proto *m, char *text,
		    size_t size);

#endif
