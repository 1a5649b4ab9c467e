/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: `adverb bench`, which runs the Python program that does the work
 * (bench/driver).
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

/* Executes the Python program with the arguments argv[1] to argv[argc - 1];
 * @argv[0] is "bench".  Returns only on failure, with an exit status, after a
 * sentence on stderr. */
int bench_main(int argc, char **argv);

#endif
