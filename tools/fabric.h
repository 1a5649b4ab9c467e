/* SPDX-License-Identifier: BSD-2-Clause */
/* adverb fabric: the process of an emulated subnet, and what asks it. */
#ifndef TOOLS_FABRIC_H
#define TOOLS_FABRIC_H

#include "launch.h"

int fabric_main(int argc, char **argv);

/*
 * For `adverb run --fabric`: takes a host of the fabric at that socket (NULL:
 * the user's own) for the program, by name, or the first free adapter if name
 * is NULL, and sets the program's variables.  The connection stays open in the
 * program, whose host it is as long as one of its processes has the connection.
 * Returns 0, or -1 after a sentence on stderr.
 */
int fabric_join(struct launch *l, const char *socket, const char *name);

#endif
