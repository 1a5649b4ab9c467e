/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * side: one of the two processes of `adverb pair`.
 *
 * A side is started once.  Its output is printed line by line behind its name,
 * and its whole process group is killed in the end.  Owner: pair.c.
 * Single-threaded; no lock.
 */
#ifndef TOOLS_SIDE_H
#define TOOLS_SIDE_H

#include "launch.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SIDE_LINE_MAX = 4096 };

struct side {
	const char *name; /* "server" or "client" */
	pid_t pid;	  /* 0: not started */
	int out;	  /* reads its stdout and stderr; -1: closed */
	bool ended;
	bool killed; /* by side_kill: status is not its own */
	int status;  /* once ended: as a shell counts, 128 + a signal */
	char line[SIDE_LINE_MAX];
	size_t line_size; /* bytes of line */
};

/* Clears *s and starts @argv.  0 or -errno. */
int side_start(struct side *s, const char *name, const struct launch *l,
	       const char *const argv[]);

/* Prints what the side wrote; at the end of its output, closes s->out. */
void side_read(struct side *s);

/* Takes the exit status if the side has ended. */
void side_reap(struct side *s);

/* Signals the process group, if the side is running. */
void side_kill(struct side *s, int signal);

/* After the side's end: kills the rest of its group, and prints the rest of its
 * output. */
void side_fini(struct side *s);

static inline bool side_is_running(const struct side *s)
{
	return s->pid > 0 && !s->ended;
}

#endif
