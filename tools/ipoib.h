/* SPDX-License-Identifier: BSD-2-Clause */
/* The command adverb ipoib, which starts the program adverb-ipoib. */
#ifndef TOOLS_IPOIB_H
#define TOOLS_IPOIB_H

/* Runs the command `adverb ipoib` with its arguments.  Returns only if the
 * program does not run, with the exit status, after a sentence on stderr. */
int ipoib_main(int argc, char **argv);

#endif
