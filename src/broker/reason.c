/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/reason.h"

#include "broker/proto.h"
#include "util/printable.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void reason_path(const char *path, char shown[REASON_PATH])
{
	size_t length = strlen(path);

	if (length < REASON_PATH)
		snprintf(shown, REASON_PATH, "%s", path);
	else
		snprintf(shown, REASON_PATH, "...%s",
			 path + length - (REASON_PATH - 4));
	printable_make(shown);
}

/* execve also gives ENOENT if the interpreter or loader of the file is missing,
 * and EACCES for several reasons. */
void reason_exec(const char *path, int err, char text[REASON_TEXT])
{
	struct stat st;
	bool is_there = !stat(path, &st);

	if (err == ENOENT && is_there)
		snprintf(text, REASON_TEXT,
			 "the interpreter or loader that it names is missing");
	else if (err == ENOENT)
		snprintf(text, REASON_TEXT, "it is missing");
	else if (err == EACCES && is_there && S_ISDIR(st.st_mode))
		snprintf(text, REASON_TEXT, "it is a folder");
	else if (err == EACCES && is_there && !(st.st_mode & 0111))
		snprintf(text, REASON_TEXT, "it is not executable");
	else if (err == EACCES)
		snprintf(text, REASON_TEXT,
			 "this user may not execute it, or it lies on a file "
			 "system mounted noexec");
	else if (err == ENOEXEC)
		snprintf(text, REASON_TEXT,
			 "it is not a program for this machine");
	else
		snprintf(text, REASON_TEXT, "%s", strerror(err));
}

void reason_clone(int err, char text[REASON_TEXT])
{
	if (err == EAGAIN)
		snprintf(text, REASON_TEXT,
			 "the limit on processes (ulimit -u, or the cgroup's) "
			 "is reached");
	else if (err == EPERM || err == ENOSYS)
		snprintf(text, REASON_TEXT, "this sandbox allows none");
	else
		snprintf(text, REASON_TEXT, "%s", strerror(err));
}

/* Returns the last line of the text `words` that is not blank, without its
 * newline.  *bytes: the length of the text, and after the call that of the
 * line. */
static const char *last_line(const char *words, size_t *bytes)
{
	const char *end = words + *bytes, *at;

	while (end > words && (unsigned char)end[-1] <= ' ')
		end--;
	for (at = end; at > words && at[-1] != '\n'; at--)
		;
	*bytes = (size_t)(end - at);
	return at;
}

/* Returns the rest of the line after name, a colon and a space, if the line
 * begins with these; otherwise the line. */
static const char *skip_name(const char *line, size_t *bytes, const char *name)
{
	size_t length = strlen(name);

	if (*bytes < length + 2 || memcmp(line, name, length) != 0 ||
	    memcmp(line + length, ": ", 2) != 0)
		return line;
	*bytes -= length + 2;
	return line + length + 2;
}

void reason_words(const char *path, const char *words, size_t bytes,
		  char text[REASON_TEXT])
{
	const char *line = last_line(words, &bytes);

	line = skip_name(line, &bytes, path);
	line = skip_name(line, &bytes, "adverbd");
	if (bytes >= REASON_TEXT)
		bytes = REASON_TEXT - 1;
	memcpy(text, line, bytes);
	text[bytes] = '\0';
	for (size_t i = 0; i < bytes; i++)
		if (!text[i])
			text[i] = '?';
	printable_make(text);
	if (!bytes)
		snprintf(text, REASON_TEXT,
			 "it ended before it served, and printed nothing: a "
			 "signal, a limit or a sandbox has ended it, or the "
			 "file is damaged");
}

void reason_unreached(int err, char text[REASON_TEXT])
{
	if (err == EAGAIN)
		snprintf(text, REASON_TEXT,
			 "another program starts, or has to start, the broker "
			 "adverbd of this network namespace, and is slow or "
			 "stopped; start this program again later");
	else
		snprintf(text, REASON_TEXT,
			 "the broker adverbd of this network namespace cannot "
			 "be reached: %s; run adverb doctor to see what this "
			 "machine allows",
			 strerror(err));
}

void reason_process(pid_t pid, uid_t user, char text[REASON_PROCESS])
{
	if (pid > 0)
		snprintf(text, REASON_PROCESS, "process %d of user %u",
			 (int)pid, (unsigned)user);
	else
		snprintf(text, REASON_PROCESS,
			 "a process of another PID namespace and of user %u",
			 (unsigned)user);
}

void reason_version(const char *who, const struct proto *m, char *text,
		    size_t size)
{
	char release[PROTO_RELEASE];

	memcpy(release, m->release, sizeof(release));
	release[sizeof(release) - 1] = '\0';
	printable_make(release);
	snprintf(
		text, size,
		"%s is of adverb %s (protocol %u), this library of " ADVERB_VERSION
		" (protocol %u)",
		who, *release ? release : "of another version", m->version,
		PROTO_VERSION);
}
