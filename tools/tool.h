/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool: the two-ended tools `adverb pair` knows, and how to start their ends.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>

enum { TOOL_WORDS_MAX = 8 };

/*
 * One tool.  In the words "@" stands for the server's address and "%" for the
 * free TCP port.  @server and @client come before the user's own arguments,
 * but @last comes after the client's.  A word is left out, with the one after
 * it, if the user gave that option himself.
 */
struct tool {
	const char *name; /* a trailing '*' matches any ending */
	const char *server[TOOL_WORDS_MAX];
	const char *client[TOOL_WORDS_MAX];
	const char *last;
	bool client_only_args; /* the user's arguments are for the client */
	bool server_stays;     /* it never ends by itself */
	const char *port_long; /* the long name of the -p option, or NULL */
	/* the client's end, in the same folder; NULL: the same program */
	const char *client_program;
	/* NULL, or the row of those releases whose usage has this word */
	const struct tool *newer;
	const char *newer_word;
};

/* The row for @program (a path or a name), or NULL. */
const struct tool *tool_find(const char *program);

/* The row for the program of @tool's row whose -h says @usage: that row, or the
 * one of newer releases. */
const struct tool *tool_by_usage(const struct tool *tool, const char *usage);

/* The program of the client's end: the server's @program, or what stands in
 * @path of @size bytes then; NULL if that is too long for it. */
const char *tool_client(const struct tool *tool, const char *program,
			char *path, size_t size);

/*
 * Builds the argv of one end in @out of @max entries, NULL at the end.
 * @user is program and arguments as the user gave them; tool_client has the
 * program of the client's end.  Strings are borrowed.  Returns the count, or -1
 * if there is no room.
 */
int tool_argv(const struct tool *tool, bool server, char *const user[],
	      const char *address, const char *port, const char **out,
	      size_t max);

#endif
