/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * binary: the facts about a program file that decide what the dynamic loader
 * does.
 *
 * Reads enough of an ELF file (System V gABI, chapters 4 and 5) to say whether
 * LD_LIBRARY_PATH and LD_PRELOAD have an effect on the program.  Reads the name
 * of the interpreter if the file is a script.  Keeps no memory, takes no lock.
 */
#ifndef TOOLS_BINARY_H
#define TOOLS_BINARY_H

#include <limits.h>
#include <stdbool.h>

/* The kind of program that a file is for the kernel and the loader. */
enum binary_kind {
	BINARY_SCRIPT,	/* not an ELF file: the kernel finds its interpreter */
	BINARY_DYNAMIC, /* has a PT_INTERP: the loader reads LD_* */
	BINARY_STATIC,	/* no PT_INTERP: no library is ever loaded */
	BINARY_FOREIGN, /* built for another word size or processor, or the ELF
			   header is cut short or not as expected */
};

/* The facts about one file.  `interpreter` is for a script alone.  The other
 * members after `kind` are false or "" unless kind is BINARY_DYNAMIC or
 * BINARY_STATIC. */
struct binary_facts {
	enum binary_kind kind;
	/* the program has DT_RPATH and no DT_RUNPATH: the loader searches
	 * DT_RPATH before LD_LIBRARY_PATH */
	bool rpath;
	/* the loader is musl's, which loads no library built with glibc */
	bool musl;
	/* the program ends at its start if any library, such as a preloaded
	 * one, is loaded before libasan */
	bool old_asan;
	/* the text of DT_RUNPATH, or of DT_RPATH if there is no DT_RUNPATH; "":
	 * the program has neither, or the text cannot be read */
	char search[PATH_MAX];
	/* the path of the interpreter in a script's first line; "": none */
	char interpreter[PATH_MAX];
};

/* Reads the facts about the file @path into *facts.  Returns 0, or -errno if
 * the file cannot be read (-EACCES also if @path is no regular file, as from
 * execve(2)); then *facts says BINARY_SCRIPT. */
int binary_read(const char *path, struct binary_facts *facts);

#endif
