/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool: the two-ended tools that `adverb pair` knows, and the command lines of
 * their ends.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>

enum { TOOL_WORDS_MAX = 8 };

/*
 * One tool.  In its words "@" stands for the server's address, "%" for the free
 * TCP port.  @server and @client come before the user's arguments, @last behind
 * those of the client.  An option of the row and its value are left out if the
 * user gave that option.
 */
struct tool {
	const char *name; /* a pattern of fnmatch(3) */
	const char *server[TOOL_WORDS_MAX];
	const char *client[TOOL_WORDS_MAX];
	const char *last;
	bool client_only_args; /* the user's arguments are for the client */
	bool server_stays;     /* the server never ends by itself */
	const char *port_long; /* the long name of the -p option, or NULL */
	/* the client's program, in the server's folder; NULL: the same one */
	const char *client_program;
	/* the row for releases whose usage has newer_word; NULL: none */
	const struct tool *newer;
	const char *newer_word;
};

/* The row for @program, a path or a name; NULL: there is none. */
const struct tool *tool_find(const char *program);

/* @tool, or the row of its newer releases, as @usage, which the program prints
 * for -h, says. */
const struct tool *tool_by_usage(const struct tool *tool, const char *usage);

/* The client's program: @program, which is the server's, or another one, whose
 * path is put into @path of @size bytes; NULL: the path is too long. */
const char *tool_client(const struct tool *tool, const char *program,
			char *path, size_t size);

/*
 * Builds the argv of one end in @out of @max entries, with NULL at the end.
 * @user: the program and its arguments as the user gave them; out[0] is
 * user[0], for which the caller puts tool_client's program.  Strings are
 * borrowed. Returns the count, or -1: @out is too small.
 */
int tool_argv(const struct tool *tool, bool server, char *const user[],
	      const char *address, const char *port, const char **out,
	      size_t max);

#endif
