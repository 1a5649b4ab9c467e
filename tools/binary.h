/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binary: what the dynamic loader will make of a program file.
 *
 * Reads just enough of an ELF file (System V gABI, chapters 4 and 5) to say
 * whether LD_LIBRARY_PATH can reach it.  No allocation kept, no lock.
 */
#ifndef TOOLS_BINARY_H
#define TOOLS_BINARY_H

#include <stdbool.h>

enum binary_kind {
	BINARY_SCRIPT,	/* not an ELF file: the kernel finds its interpreter */
	BINARY_DYNAMIC, /* has a PT_INTERP: the loader reads LD_* */
	BINARY_STATIC,	/* no interpreter: no library is ever loaded */
	BINARY_FOREIGN, /* another word size or processor than ours */
};

struct binary_facts {
	enum binary_kind kind;
	bool rpath; /* DT_RPATH without DT_RUNPATH: beats LD_LIBRARY_PATH */
};

/* Reads @path into @facts.  Returns 0 or -errno. */
int binary_read(const char *path, struct binary_facts *facts);

#endif
