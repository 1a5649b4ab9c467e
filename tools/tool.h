/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tool: the tools that `adverb pair` knows, and the command lines of a tool's
 * server and client.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>

enum { TOOL_WORDS_MAX = 8 }; /* words of a row for one side */

/*
 * One tool.  In its words "@" stands for the server's address, "%" for the free
 * TCP port.  The command line of a side is the program, the words of @server or
 * @client, the user's arguments, and, for the client, @last.  An option of the
 * row and its value are left out if the user gave that option.
 */
struct tool {
	const char *name; /* a pattern of fnmatch(3) */
	/* the words of each side; NULL: the rest is not used */
	const char *server[TOOL_WORDS_MAX];
	const char *client[TOOL_WORDS_MAX];
	const char *last;      /* the last word of the client, or NULL */
	bool client_only_args; /* only the client gets the user's arguments */
	bool server_stays;     /* the server never ends by itself */
	const char *port_long; /* the long name of the -p option, or NULL */
	/* the client's program, in the server's folder; NULL: the server's */
	const char *client_program;
	/* the row for newer releases of the tool; NULL: none */
	const struct tool *newer;
	/* a word that is in the usage (-h) of newer releases only */
	const char *newer_word;
};

/* Returns the row for @program, a path or a name; NULL: there is none. */
const struct tool *tool_find(const char *program);

/* Returns the row for the installed release: tool->newer if there is one and
 * tool->newer_word is in @usage, the text that the program prints for -h;
 * otherwise @tool. */
const struct tool *tool_by_usage(const struct tool *tool, const char *usage);

/* Returns the client's program for the server's program @program: @program
 * itself, or @path of @size bytes with the path of tool->client_program; NULL:
 * the path is too long. */
const char *tool_client(const struct tool *tool, const char *program,
			char *path, size_t size);

/*
 * Builds the argv of server or client in @out of @max entries, with NULL at the
 * end.  @user: the program and its arguments as the user gave them.  out[0] is
 * user[0]; for the client the caller replaces it by tool_client's program.
 * Strings are borrowed.  Returns the count, or -1: @out is too small.
 */
int tool_argv(const struct tool *tool, bool server, char *const user[],
	      const char *address, const char *port, const char **out,
	      size_t max);

#endif
