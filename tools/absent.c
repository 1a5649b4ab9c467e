/* SPDX-License-Identifier: BSD-2-Clause */
#include "absent.h"

#include "launch.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The folder of a build tree that has env.sh, relative to the folder of adverb,
 * build/out/tools. */
#define BUILD_FOLDER "../../../build"

/* Has ci/setup unpacked the program in the tree in which adverb was built?  If
 * so, `env` is the path of the tree's env.sh, which adds the program's folder
 * to PATH. */
static bool is_unpacked(const char *program, char env[PATH_MAX])
{
	static const char *const folders[] = {"usr/bin", "usr/sbin", "bin",
					      "sbin"};
	char name[PATH_MAX], path[PATH_MAX];

	if (launch_beside(BUILD_FOLDER "/env.sh", path) || !realpath(path, env))
		return false;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		if (snprintf(name, sizeof(name), BUILD_FOLDER "/deb/root/%s/%s",
			     folders[i], program) < (int)sizeof(name) &&
		    !launch_beside(name, path) && !access(path, X_OK))
			return true;
	}
	return false;
}

static void say_not_found(const char *program)
{
	char env[PATH_MAX];

	if (strchr(program, '/'))
		fprintf(stderr,
			"adverb: cannot run %s: there is no such file; check "
			"the path.\n",
			program);
	else if (is_unpacked(program, env))
		fprintf(stderr,
			"adverb: cannot run %s: no folder of PATH has it, but "
			"ci/setup has unpacked it; type `. %s` in this shell, "
			"and then this command again.\n",
			program, env);
	else
		fprintf(stderr,
			"adverb: cannot run %s: no folder of PATH has a "
			"program of this name; install the program, or give "
			"its path.\n",
			program);
}

/* Says why this user may not execute @program: its file, or each file of its
 * name in PATH, is not executable; or its file system is mounted with the
 * option noexec; or the user may not search a folder of its path. */
static void say_denied(const char *program)
{
	struct statvfs system;
	struct stat st;

	if (!strchr(program, '/'))
		fprintf(stderr,
			"adverb: cannot run %s: the files of this name in the "
			"folders of PATH are not executable for this user, or "
			"are on file systems with the option noexec; correct "
			"PATH, or allow execution (chmod +x).\n",
			program);
	else if (stat(program, &st))
		fprintf(stderr,
			"adverb: cannot run %s: this user may not search one "
			"of the folders on the path; allow that (chmod +x "
			"FOLDER), or copy the program to another folder.\n",
			program);
	else if (!statvfs(program, &system) && system.f_flag & ST_NOEXEC)
		fprintf(stderr,
			"adverb: cannot run %s: its file system is mounted "
			"with the option noexec; copy the program to another "
			"file system.\n",
			program);
	else
		fprintf(stderr,
			"adverb: cannot run %s: the file is not executable for "
			"this user; if it is a program, allow execution (chmod "
			"+x %s).\n",
			program, program);
}

int absent_say(const char *program, int err)
{
	if (err == ENOENT)
		say_not_found(program);
	else if (err == EACCES)
		say_denied(program);
	else if (err == EISDIR)
		fprintf(stderr,
			"adverb: cannot run %s: it is a folder; name a "
			"program.\n",
			program);
	else
		fprintf(stderr, "adverb: cannot run %s: %s.\n", program,
			strerror(err));
	return err == ENOENT ? 127 : 126;
}
