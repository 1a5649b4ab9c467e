/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair: `adverb pair`, which runs server and client of a tool.
 */
#ifndef TOOLS_PAIR_H
#define TOOLS_PAIR_H

/* Runs server and client; @argv[0] is "pair".  Returns an exit status: the
 * greater status of the two programs, 124 if the time is up, 128 + N after
 * signal N, 0 after --help, 2 if the command line is wrong, 126 or 127 if a
 * program cannot run, or 1 if adverb pair itself fails or the server ends with
 * 0 before it listens. */
int pair_main(int argc, char **argv);

#endif
