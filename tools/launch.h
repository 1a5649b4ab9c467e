/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * launch: start a program with adverb's libraries in front of the system's.
 *
 * Shared by `adverb run` and `adverb pair`.  A struct launch is filled by
 * launch_init and launch_option, then read only; it borrows every string.
 * Single-threaded programs only; no lock.
 */
#ifndef TOOLS_LAUNCH_H
#define TOOLS_LAUNCH_H

#include "binary.h"

#include <getopt.h>
#include <limits.h>
#include <stdbool.h>

enum { LAUNCH_ENV_MAX = 32 };

struct launch {
	char libdir[PATH_MAX];
	const char *env[LAUNCH_ENV_MAX]; /* "NAME=value", set in the program */
	int env_count;
	bool shim;    /* preload libadverb-shim.so; launch_check may refuse */
	bool insists; /* --shim: say so if there is nothing to see by it */
	bool private; /* in a network namespace of its own: private.h */
	bool preload; /* DT_RPATH: preload our libraries, see launch_check */
	struct binary_facts facts; /* of the program or its interpreter */
	char origin[PATH_MAX];	   /* the folder that one is in */
};

/* The long options run and pair share; the values lie above any char. */
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

/* What --help says about --pcap, and about the other shared options. */
extern const char launch_pcap_help[], launch_help[];

/* Finds the libraries beside this program.  0, or -1 and a sentence. */
int launch_init(struct launch *l);

/* Takes one shared option.  True if it was one. */
bool launch_option(struct launch *l, int option, const char *value);

/* Adds "NAME=value" (borrowed) to the program's environment. */
void launch_env(struct launch *l, const char *name_value);

/* Is it NAME=value?  Else a sentence. */
bool launch_env_is(const char *text);

/* Adds NAME=value (copied) to the program's environment. */
void launch_set(struct launch *l, const char *name, const char *value);

/* Finds @program as execvp would, in @path of PATH_MAX bytes.  0 or -errno. */
int launch_find(const char *program, char *path);

/*
 * Looks at the program before it runs: sets l->preload, withdraws l->shim from
 * one that it would end, or says in a sentence why the libraries cannot reach
 * it.  0, 126 or 127, as shells exit.
 */
int launch_check(struct launch *l, const char *program);

/* Sets the environment and becomes @argv.  Returns only on failure, 126 or 127,
 * as shells exit. */
int launch_exec(const struct launch *l, char *const argv[]);

/* The file @name beside the running program, in @path of PATH_MAX bytes. */
int launch_beside(const char *name, char *path);

#endif
