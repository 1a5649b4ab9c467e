/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: a program's own text for -h, by which `adverb pair` tells the releases
 * of a tool apart.
 *
 * No state.  Single-threaded programs only; no lock.
 */
#ifndef TOOLS_USAGE_H
#define TOOLS_USAGE_H

#include "launch.h"

#include <stddef.h>

/*
 * Runs @program with -h, as *l says after launch_check, and puts its output,
 * stderr included, into @text of @size bytes: cut to that size, with 0 at the
 * end.  The program's process group is killed after 5 seconds.  The text is
 * empty if @program cannot be run; the caller learns why when it starts
 * @program.
 */
void usage_read(const struct launch *l, const char *program, char *text,
		size_t size);

#endif
