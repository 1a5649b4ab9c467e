/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: what a program says of its own options, by which `adverb pair` knows
 * the releases of a tool apart.
 *
 * No state.  Single-threaded programs only; no lock.
 */
#ifndef TOOLS_USAGE_H
#define TOOLS_USAGE_H

#include "launch.h"

#include <stddef.h>

/*
 * Runs @program with -h, as @l has it after launch_check, and puts what it
 * writes, stderr too, into @text of @size bytes, 0 at the end, cut where it is
 * longer.  It has 5 seconds, and is killed with its process group then.  An
 * empty text if it cannot be run: who starts it in earnest learns why.
 */
void usage_read(const struct launch *l, const char *program, char *text,
		size_t size);

#endif
