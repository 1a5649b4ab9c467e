/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * side: one of the two processes of `adverb pair`.
 *
 * A side is started once.  Each line of the side's output is printed after the
 * side's name; a line of SIDE_LINE_MAX bytes or more is cut into several.
 * side_fini kills the side's whole process group.  Owner: pair.c.
 * Single-threaded; no lock.
 */
#ifndef TOOLS_SIDE_H
#define TOOLS_SIDE_H

#include "launch.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SIDE_LINE_MAX = 4096 };

/* One side, from side_start to side_fini.  The caller sets `out` to -1, and the
 * rest to zeroes, if it may call side_fini without side_start. */
struct side {
	const char *name; /* "server" or "client" */
	pid_t pid;	  /* 0: not started */
	int out;	  /* the read end of stdout and stderr; -1: closed */
	bool ended;	  /* the process has ended */
	bool reaped;	  /* side_fini has reaped it: the pid may be another
			     process's */
	bool killed; /* side_kill was called: status is not the program's own */
	int status;  /* once ended: as a shell's, 128 + N for signal N */
	char line[SIDE_LINE_MAX]; /* the start of an unfinished line */
	size_t line_size;	  /* bytes of `line` in use */
};

/* Clears *s and starts the program @argv with the libraries and variables of
 * *l.  @name is borrowed.  Returns 0 or -errno. */
int side_start(struct side *s, const char *name, const struct launch *l,
	       const char *const argv[]);

/* Reads the side's output once, and prints the lines that are then complete; at
 * the end of the output, prints the rest and closes s->out.  Does not wait. */
void side_read(struct side *s);

/* If the side has ended, sets s->ended and s->status.  Does not wait. */
void side_look(struct side *s);

/* Sends @signal to the process group if the side is running. */
void side_kill(struct side *s, int signal);

/* Kills what is left of the process group, reaps the process if it has ended,
 * prints the rest of the output, and closes s->out.  After the process was
 * reaped, further calls do nothing. */
void side_fini(struct side *s);

/* Was the side started, and has side_look not found its end yet? */
static inline bool side_is_running(const struct side *s)
{
	return s->pid > 0 && !s->ended;
}

#endif
