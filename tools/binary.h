/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binary: what the dynamic loader will make of a program file.
 *
 * Reads just enough of an ELF file (System V gABI, chapters 4 and 5) to say
 * whether LD_LIBRARY_PATH and LD_PRELOAD can reach it, and of a script which
 * interpreter it names.  No allocation kept, no lock.
 */
#ifndef TOOLS_BINARY_H
#define TOOLS_BINARY_H

#include <limits.h>
#include <stdbool.h>

enum binary_kind {
	BINARY_SCRIPT,	/* not an ELF file: the kernel finds its interpreter */
	BINARY_DYNAMIC, /* has a PT_INTERP: the loader reads LD_* */
	BINARY_STATIC,	/* no interpreter: no library is ever loaded */
	BINARY_FOREIGN, /* another word size or processor than ours */
};

struct binary_facts {
	enum binary_kind kind;
	/* DT_RPATH without DT_RUNPATH: beats LD_LIBRARY_PATH */
	bool rpath;
	/* its loader is musl's, which takes no library of ours */
	bool musl;
	/* it ends if a library comes before its AddressSanitizer */
	bool old_asan;
	/* DT_RUNPATH, or else DT_RPATH, as written; "": neither */
	char search[PATH_MAX];
	/* the interpreter of a script, behind "#!"; "": none is named */
	char interpreter[PATH_MAX];
};

/* Reads @path into @facts.  Returns 0 or -errno. */
int binary_read(const char *path, struct binary_facts *facts);

#endif
