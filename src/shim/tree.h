/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the synthesised tree lies: the one rule that host, which writes it,
 * and the shim, which shows it, must agree on.  Network namespaces differ in
 * their interfaces, so each has a tree.  Allocates nothing.
 *
 * In /tmp, and in /dev/shm where that cannot be written, anybody may have a
 * folder, and who is root of a user namespace has the number of every other
 * root: it is the first of a few names that nobody else has.
 */
#ifndef SHIM_TREE_H
#define SHIM_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_NAMES 16

/* Nobody's yet, or the caller's own. */
static inline bool tree_is_free(const char *folder)
{
	struct stat s;

	if (lstat(folder, &s))
		return true;
	return S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
	       access(folder, W_OK) == 0;
}

/* The caller's own folder below; its length, or what it would be. */
static inline int tree_own(const char *below, char *text, size_t size)
{
	unsigned user = (unsigned)geteuid();
	int n = snprintf(text, size, "%s/adverb-%u", below, user);

	for (int i = 1; i < TREE_NAMES && n < (int)size && !tree_is_free(text);
	     i++)
		n = snprintf(text, size, "%s/adverb-%u-%d", below, user, i);
	return n;
}

/* Where everybody may write, if there is no folder of the user's own. */
static inline const char *tree_common(void)
{
	return access("/tmp", W_OK) ? "/dev/shm" : "/tmp";
}

/* False if it does not fit. */
static inline bool tree_path(char *text, size_t size)
{
	const char *tree = secure_getenv("ADVERB_SYSFS");
	const char *runtime = secure_getenv("ADVERB_RUNTIME");
	const char *user = secure_getenv("XDG_RUNTIME_DIR");
	struct stat ns = {0};
	bool has_own = user && *user && access(user, W_OK) == 0;
	int n;

	if (tree && *tree)
		return snprintf(text, size, "%s", tree) < (int)size;
	stat("/proc/self/ns/net", &ns);
	if (runtime && *runtime)
		n = snprintf(text, size, "%s", runtime);
	else
		n = tree_own(has_own ? user : tree_common(), text, size);
	if (n < (int)size)
		n += snprintf(text + n, size - (size_t)n, "/sysfs-%ju",
			      (uintmax_t)ns.st_ino);
	return n < (int)size;
}

#endif
