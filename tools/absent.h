/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * absent: the sentence about a program that `adverb run` and `adverb pair`
 * cannot execute.  No state, no lock.
 */
#ifndef TOOLS_ABSENT_H
#define TOOLS_ABSENT_H

/*
 * Says on stderr why @program, a path or a name without '/', cannot be
 * executed, and for ENOENT, EACCES and EISDIR what the user can do.  @err is
 * the errno value (positive) with which launch_find or execvp has failed.  If
 * no folder of PATH has the program, but ci/setup has unpacked it in the tree
 * in which adverb was built, the sentence names the tree's build/env.sh.
 * Returns the exit status: 127 for ENOENT, otherwise 126, as shells exit.
 */
int absent_say(const char *program, int err);

#endif
