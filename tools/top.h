/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top: `adverb top`, which shows the traffic of the adverb processes that this
 * user may read (watch.h), and what keeps a queue pair from sending.  The
 * output is a table or JSON, once or at each interval.
 */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

/* Runs `adverb top`; @argv[0] is "top".  Returns an exit status: 0; 1 if there
 * is no memory, or if /proc cannot be read or shows no process; 2 if the
 * command line is wrong. */
int top_main(int argc, char **argv);

#endif
