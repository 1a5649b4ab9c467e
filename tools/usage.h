/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: reads the text that a program prints for -h, by which `adverb pair`
 * tells the releases of a tool apart.
 *
 * Keeps no state.  Single-threaded programs only; no lock.
 */
#ifndef TOOLS_USAGE_H
#define TOOLS_USAGE_H

#include "launch.h"

#include <stddef.h>

/*
 * Runs @program with -h and the libraries of *l, which launch_check has filled.
 * Puts the program's output, stderr included, into @text of @size bytes: cut to
 * that size, with 0 at the end.  Kills the program's process group when the
 * output ends, @text is full, or 5 seconds have passed.  If @program cannot be
 * run, the text says why, or is empty.
 */
void usage_read(const struct launch *l, const char *program, char *text,
		size_t size);

#endif
