/* SPDX-License-Identifier: BSD-2-Clause */
/* The command adverb ipoib, which starts the program adverb-ipoib. */
#ifndef TOOLS_IPOIB_H
#define TOOLS_IPOIB_H

/* Runs the command `adverb ipoib` with its arguments.  Returns only if the
 * program cannot be run: prints why on stderr, and returns the exit status. */
int ipoib_main(int argc, char **argv);

#endif
