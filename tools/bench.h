/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench: `adverb bench`, the figures beside the raw limits.  The work is done
 * by a Python program beside this one (bench/house); here it is found.
 */
#ifndef TOOLS_BENCH_H
#define TOOLS_BENCH_H

/* Becomes the driver; returns only on failure: 127. */
int bench_main(int argc, char **argv);

#endif
