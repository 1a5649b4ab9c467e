/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top: `adverb top`, which shows the traffic of the adverb processes of this
 * user, and why a queue pair does not send more: as a table or as JSON, once or
 * in intervals.
 */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

/* @argv[0] is "top".  Returns an exit status. */
int top_main(int argc, char **argv);

#endif
