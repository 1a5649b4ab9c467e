/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: `adverb bench`, which runs the Python program that does the work
 * (bench/driver).
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

/* Executes the Python program with the arguments argv[1] to argv[argc - 1];
 * argv[0] is "bench".  The program finds the path of adverb in ADVERB_COMMAND.
 * Returns only on failure, after a sentence on stderr, with an exit status: 127
 * if the program or python3 cannot be run, 2 if there are more than 59
 * arguments. */
int bench_main(int argc, char **argv);

#endif
