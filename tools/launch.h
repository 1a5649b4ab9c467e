/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch: starts a program whose loader finds adverb's libraries before the
 * system's.
 *
 * `adverb run`, `adverb pair` and `adverb ipoib` start programs with this code.
 * launch_exec only reads a struct launch; launch_init, launch_option,
 * launch_env, launch_set and launch_check fill it.  A struct launch borrows the
 * strings given to launch_env.  One thread; no lock.
 */
#ifndef TOOLS_LAUNCH_H
#define TOOLS_LAUNCH_H

#include "binary.h"

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>

/* How a program is started. */
struct launch {
	char libdir[PATH_MAX]; /* the folder of adverb's libraries */
	/* "NAME=value", set in the program; owned, but never freed */
	const char **env;
	int env_count; /* entries of env */
	bool shim;    /* preload libadverb-shim.so; launch_check may clear it */
	bool insists; /* --shim: print a sentence if the shim has no effect */
	bool private; /* --private: run in a new network namespace, private.h */
	bool preload; /* preload the libraries: the program has DT_RPATH */
	/* about the program, or about the interpreter of a script */
	struct binary_facts facts;
	/* the folder of the file that has these facts; "": unknown */
	char origin[PATH_MAX];
};

/* The long options that run and pair share.  The values are above those of
 * options with one letter. */
enum {
	LAUNCH_OPT_PCAP = 1000,
	LAUNCH_OPT_SHIM,
	LAUNCH_OPT_NO_SHIM,
	LAUNCH_OPT_EXPLAIN,
	LAUNCH_OPT_NO_EXPLAIN,
	LAUNCH_OPT_STRICT,
	LAUNCH_OPT_DEVICE,
	LAUNCH_OPT_PRIVATE,
	LAUNCH_OPT_LAST,
};

#define LAUNCH_OPTIONS                                                         \
	{"pcap", required_argument, NULL, LAUNCH_OPT_PCAP},                    \
		{"shim", no_argument, NULL, LAUNCH_OPT_SHIM},                  \
		{"no-shim", no_argument, NULL, LAUNCH_OPT_NO_SHIM},            \
		{"explain", no_argument, NULL, LAUNCH_OPT_EXPLAIN},            \
		{"no-explain", no_argument, NULL, LAUNCH_OPT_NO_EXPLAIN},      \
		{"strict", no_argument, NULL, LAUNCH_OPT_STRICT},              \
		{"private", no_argument, NULL, LAUNCH_OPT_PRIVATE},            \
	{                                                                      \
		"device", required_argument, NULL, LAUNCH_OPT_DEVICE           \
	}

/* Lines of --help: launch_pcap_help has those of --pcap, launch_help those of
 * the other shared options. */
extern const char launch_pcap_help[], launch_help[];

/* Clears *l, sets l->shim, and finds the libraries beside this program.
 * Returns 0, or -1 after a sentence on stderr. */
int launch_init(struct launch *l);

/* Notes one option that run and pair share (LAUNCH_OPT_*); @value is copied.
 * Returns false, and notes nothing, if @option is another option. */
bool launch_option(struct launch *l, int option, const char *value);

/* Adds "NAME=value" (borrowed) to the program's environment. */
void launch_env(struct launch *l, const char *name_value);

/* Is @text "NAME=value"?  If not, says so on stderr. */
bool launch_env_is(const char *text);

/* Does what launch_env does, but copies the name and the value. */
void launch_set(struct launch *l, const char *name, const char *value);

/* Finds @program as execvp would, and puts its path into @path of PATH_MAX
 * bytes.  Returns 0; -ENOENT: there is no such file or, for a name without '/',
 * no folder of PATH that this user may search has a file of this name; -EACCES:
 * the file, or each file of this name in PATH, may not be executed; -EISDIR:
 * @program is the path of a folder; or another -errno. */
int launch_find(const char *program, char *path);

/*
 * Called before launch_exec.  Finds the file of the program as launch_find
 * does, but by the PATH that the program will get, and looks at this file: sets
 * l->facts, l->origin and l->preload, and clears l->shim if the program would
 * not run with the shim, or if the shim's file is missing, unreadable or on a
 * file system that is mounted with the option noexec.  Returns 0; or, after a
 * sentence on stderr that says why the program does not run or would not load
 * the libraries, 126 or 127, as shells exit.
 */
int launch_check(struct launch *l, const char *program);

/* Sets the environment, raises RLIMIT_MEMLOCK as far as this process may,
 * writes the files that the shim shows if l->shim, and executes @argv.  Returns
 * only on failure, with the exit status 126 or 127, as shells exit, after a
 * sentence on stderr. */
int launch_exec(const struct launch *l, char *const argv[]);

/* Puts the path of the file @name into @path of PATH_MAX bytes.  @name is
 * relative to this program's folder.  Returns 0 or -errno. */
int launch_beside(const char *name, char *path);

#endif
