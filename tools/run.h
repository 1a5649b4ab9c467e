/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run: `adverb run`, which runs a program with adverb's libraries.
 */
#ifndef TOOLS_RUN_H
#define TOOLS_RUN_H

/* Executes the program; @argv[0] is "run".  Returns only if no program is
 * executed, with an exit status: 0 after --help; 2 if the command line is
 * wrong; 126 or 127, after a sentence on stderr, if the program cannot run, or
 * has no host of the fabric or no network namespace. */
int run_main(int argc, char **argv);

#endif
