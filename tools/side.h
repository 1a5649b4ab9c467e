/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * side: one of the two processes of `adverb pair`.
 *
 * Owner: pair.c.  A side is started once, its output is read until it ends
 * and passed on line by line behind its name, and it is killed with all its
 * process group.  Single-threaded, no lock.
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
	int out;	  /* its stdout and stderr, or -1 */
	bool ended;
	bool killed; /* by us: its status is not its own */
	int status;  /* as a shell would say it, once ended */
	char line[SIDE_LINE_MAX];
	size_t line_size; /* bytes */
};

/* Starts @argv.  0 or -errno. */
int side_start(struct side *s, const char *name, const struct launch *l,
	       const char *const argv[]);

/* Passes on what it wrote; closes s->out at its end. */
void side_read(struct side *s);

/* Takes its exit status if it has ended. */
void side_reap(struct side *s);

/* Signals the whole group, if it is running. */
void side_kill(struct side *s, int signal);

/* After its end: the rest of its output, and survivors of its group. */
void side_fini(struct side *s);

static inline bool side_is_running(const struct side *s)
{
	return s->pid > 0 && !s->ended;
}

#endif
