/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * background: runs a command with --background in a child process.  The command
 * itself waits until the child is ready, and returns.  One thread.
 */
#ifndef TOOLS_BACKGROUND_H
#define TOOLS_BACKGROUND_H

#include <sys/types.h>

/*
 * Forks.  @name says in messages what runs in the background.  Returns 0 in the
 * child, which gets SIGTERM if its parent ends before the child has called
 * background_ready.  Returns in the parent when the child has called
 * background_ready or has ended: the child's ID; or -1 after a sentence on
 * stderr, of the child or of this function.
 */
pid_t background_enter(const char *name);

/* In the child of background_enter: lets the parent return, and leaves the
 * terminal and the working directory.  Standard error stays if it is a regular
 * file.  Does nothing in another process, or when called again. */
void background_ready(void);

#endif
