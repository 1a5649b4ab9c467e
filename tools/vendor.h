/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vendor: the inert libraries of adapters' vendors (src/stubs), each in a
 * folder of its own below <libdir>/vendor, as in vendor/mlx5/libmlx5.so.1.
 *
 * Programs link them, so where the system has none ours stand in.  Where it has
 * one, its own is loaded: it is as new as the programs are.  No lock.
 */
#ifndef TOOLS_VENDOR_H
#define TOOLS_VENDOR_H

#include "binary.h"

enum { VENDOR_MAX = 16 };

struct vendor {
	char library[64];      /* "libmlx5.so.1" */
	char folder[PATH_MAX]; /* that it lies in */
};

/* Those that adverb has in @libdir, in the order of their names; the count. */
int vendor_list(const char *libdir, struct vendor out[VENDOR_MAX]);

/*
 * Does a program find the system's own?  @facts (or NULL) is of the program,
 * and @origin the folder that it lies in.
 */
bool vendor_is_installed(const struct vendor *v,
			 const struct binary_facts *facts, const char *origin);

#endif
