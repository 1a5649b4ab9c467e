/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair: `adverb pair`, which runs server and client of a tool.
 */
#ifndef TOOLS_PAIR_H
#define TOOLS_PAIR_H

/* @argv[0] is "pair".  Returns an exit status. */
int pair_main(int argc, char **argv);

#endif
