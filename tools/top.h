/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top: `adverb top`, what the adverb processes of this user are doing and why
 * a queue pair is slow, as a live table, once, or as JSON.
 */
#ifndef TOOLS_TOP_H
#define TOOLS_TOP_H

int top_main(int argc, char **argv);

#endif
