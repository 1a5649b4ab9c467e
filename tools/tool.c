/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define POSITIONAL .last = "@", .port_long = "--port"
#define PINGPONG \
	.server = {"-g", "1", "-p", "%"}, .client = {"-g", "1", "-p", "%"}, \
	.last = "@", .port_long = "--port"
#define DASH_S .server = {"-p", "%"}, .client = {"-s", "@", "-p", "%"}

/* From rdma-core 60 on, cmtime has no server: two peers use a controller. */
static const struct tool cmtime_of_peers = {
	.name = "cmtime", .server = {"-b", "@", "-C", "@", "-p", "%", "-L"},
	.client = {"-b", "@", "-C", "@", "-p", "%"}, .server_stays = true,
};

static const struct tool tools[] = {
	{ .name = "ib_*_bw", .server = {"-p", "%"}, .client = {"-p", "%"},
	  POSITIONAL },
	{ .name = "ib_*_lat", .server = {"-p", "%"}, .client = {"-p", "%"},
	  POSITIONAL },
	{ .name = "ibv_*_pingpong", PINGPONG },
	{ .name = "qperf", .server = {"-lp", "%"}, .client = {"-lp", "%", "@"},
	  .client_only_args = true, .server_stays = true },
	{ .name = "rping", .server = {"-s", "-a", "@", "-p", "%", "-C", "100"},
	  .client = {"-c", "-a", "@", "-p", "%", "-C", "100"} },
	{ .name = "ucmatose", DASH_S },
	{ .name = "udaddy", .client = {"-s", "@"} }, /* -p is not a port */
	{ .name = "cmtime", .server = {"-b", "@", "-p", "%"},
	  .client = {"-s", "@", "-p", "%"}, .server_stays = true,
	  .newer = &cmtime_of_peers, .newer_word = "controller_address" },
	{ .name = "rstream", DASH_S },
	{ .name = "riostream", DASH_S },
	{ .name = "udpong", DASH_S },
	{ .name = "rdma_server", DASH_S, .client_program = "rdma_client" },
	{ .name = "rdma_xserver", DASH_S, .client_program = "rdma_xclient" },
};
/* clang-format on */

const struct tool *tool_find(const char *program)
{
	const char *slash = strrchr(program, '/');
	const char *name = slash ? slash + 1 : program;

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		if (fnmatch(tools[i].name, name, 0) == 0)
			return &tools[i];
	}
	return NULL;
}

/* Did the user give the option @word?  Examples for "-p": -p N, -pN, --port N,
 * --port=N. */
static bool user_has(const struct tool *tool, char *const user[],
		     const char *word)
{
	const char *name = NULL;

	if (strcmp(word, "-p") == 0)
		name = tool->port_long;
	else if (strcmp(word, "-g") == 0)
		name = "--gid-idx";
	for (size_t i = 1; user[i]; i++) {
		size_t len = name ? strlen(name) : 0;

		if (strncmp(user[i], word, strlen(word)) == 0)
			return true;
		if (name && strncmp(user[i], name, len) == 0 &&
		    (user[i][len] == '\0' || user[i][len] == '='))
			return true;
	}
	return false;
}

const struct tool *tool_by_usage(const struct tool *tool, const char *usage)
{
	if (tool->newer && strstr(usage, tool->newer_word))
		return tool->newer;
	return tool;
}

const char *tool_client(const struct tool *tool, const char *program,
			char *path, size_t size)
{
	const char *slash = strrchr(program, '/');
	int folder = slash ? (int)(slash + 1 - program) : 0;
	int length;

	if (!tool->client_program)
		return program;
	length = snprintf(path, size, "%.*s%s", folder, program,
			  tool->client_program);
	return length >= 0 && (size_t)length < size ? path : NULL;
}

/* A command line under construction. */
struct words {
	const char **out; /* of max entries; count of them are in use */
	size_t count, max;
};

/* Adds a word.  A count of max or more says that words did not fit. */
static void add_word(struct words *w, const char *word)
{
	if (w->count + 1 < w->max)
		w->out[w->count] = word;
	w->count++;
}

static const char *fill_in(const char *word, const char *address,
			   const char *port)
{
	if (strcmp(word, "@") == 0)
		return address;
	return strcmp(word, "%") == 0 ? port : word;
}

int tool_argv(const struct tool *tool, bool server, char *const user[],
	      const char *address, const char *port, const char **out,
	      size_t max)
{
	const char *const *words = server ? tool->server : tool->client;
	struct words w = {out, 0, max};

	add_word(&w, user[0]);
	for (size_t i = 0; i < TOOL_WORDS_MAX && words[i]; i++) {
		bool pair = words[i][0] == '-' && i + 1 < TOOL_WORDS_MAX &&
			    words[i + 1] && words[i + 1][0] != '-';

		if (pair && user_has(tool, user, words[i])) {
			i++;
			continue;
		}
		add_word(&w, fill_in(words[i], address, port));
	}
	for (size_t i = 1; user[i] && !(server && tool->client_only_args); i++)
		add_word(&w, user[i]);
	if (!server && tool->last)
		add_word(&w, fill_in(tool->last, address, port));
	if (w.count >= max)
		return -1;
	out[w.count] = NULL;
	return (int)w.count;
}
