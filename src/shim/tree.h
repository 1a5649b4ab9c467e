/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the synthesised tree lies: the one rule that host, which writes it,
 * and the shim, which shows it, must agree on.  Network namespaces differ in
 * their interfaces, so each has a tree.  Allocates nothing.
 */
#ifndef SHIM_TREE_H
#define SHIM_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* False if it does not fit. */
static inline bool tree_path(char *text, size_t size)
{
	const char *tree = getenv("ADVERB_SYSFS");
	const char *runtime = getenv("ADVERB_RUNTIME");
	const char *user = getenv("XDG_RUNTIME_DIR");
	struct stat ns = {0};
	int n;

	if (tree && *tree)
		return snprintf(text, size, "%s", tree) < (int)size;
	stat("/proc/self/ns/net", &ns);
	if (runtime && *runtime)
		n = snprintf(text, size, "%s/sysfs-%ju", runtime,
			     (uintmax_t)ns.st_ino);
	else
		n = snprintf(text, size, "%s/adverb-%u/sysfs-%ju",
			     user && *user && access(user, W_OK) == 0 ? user
								      : "/tmp",
			     (unsigned)geteuid(), (uintmax_t)ns.st_ino);
	return n < (int)size;
}

#endif
