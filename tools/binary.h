/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binary: the facts by which the dynamic loader treats a program file.
 *
 * Reads enough of an ELF file (System V gABI, chapters 4 and 5) to say whether
 * LD_LIBRARY_PATH and LD_PRELOAD have an effect on the program, and the name of
 * a script's interpreter.  Keeps no memory, takes no lock.
 */
#ifndef TOOLS_BINARY_H
#define TOOLS_BINARY_H

#include <limits.h>
#include <stdbool.h>

enum binary_kind {
	BINARY_SCRIPT,	/* not an ELF file: the kernel finds its interpreter */
	BINARY_DYNAMIC, /* has a PT_INTERP: the loader reads LD_* */
	BINARY_STATIC,	/* no PT_INTERP: no library is ever loaded */
	BINARY_FOREIGN, /* built for another word size or processor */
};

struct binary_facts {
	enum binary_kind kind;
	/* DT_RPATH without DT_RUNPATH, which precedes LD_LIBRARY_PATH */
	bool rpath;
	/* the loader is musl's, which loads no library built with glibc */
	bool musl;
	/* the program ends at its start if a library comes before libasan in
	 * the order of loading, as a preloaded one does */
	bool old_asan;
	/* DT_RUNPATH, or else DT_RPATH, as written; "": neither is there */
	char search[PATH_MAX];
	/* the interpreter that a script names behind "#!"; "": none */
	char interpreter[PATH_MAX];
};

/* Reads @path into @facts.  Returns 0 or -errno. */
int binary_read(const char *path, struct binary_facts *facts);

#endif
