/* SPDX-License-Identifier: BSD-2-Clause */
/* The command adverb fabric, and the option --fabric of adverb run. */
#ifndef TOOLS_FABRIC_H
#define TOOLS_FABRIC_H

#include "launch.h"

/* Runs the command `adverb fabric` with its arguments; argv[0] is "fabric".
 * Returns the exit status: 0; 1 after a sentence on stderr; 2 if the command
 * line is wrong. */
int fabric_main(int argc, char **argv);

/*
 * For `adverb run --fabric` and `adverb ipoib`: takes a host of a fabric for
 * the program, and adds ADVERB_FABRIC and ADVERB_FABRIC_HOST to the program's
 * variables in *l.  socket: the path of the fabric's socket; NULL: that of the
 * user's own fabric.  name: the ID or description of the host; NULL: the first
 * adapter that is free.  The connection to the fabric stays open in the program
 * and its children.  The host is free again when the last of these processes
 * has ended.  Returns 0, or -1 after a sentence on stderr.
 */
int fabric_join(struct launch *l, const char *socket, const char *name);

#endif
