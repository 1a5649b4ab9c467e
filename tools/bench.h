/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: `adverb bench`, which runs the Python program that does the work
 * (bench/driver).
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

/* Executes the Python program with argv[1] and on; @argv[0] is "bench". Returns
 * an exit status, and only on failure. */
int bench_main(int argc, char **argv);

#endif
