/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run: `adverb run`, which runs a program with adverb's libraries.
 */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

/* @argv[0] is "run".  Returns an exit status, and only on failure. */
int run_main(int argc, char **argv);

#endif
