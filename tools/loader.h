/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader: what the dynamic loader is told, so that a program gets adverb's
 * libraries: LD_LIBRARY_PATH, LD_PRELOAD and, for AddressSanitizer's check of
 * the latter, ASAN_OPTIONS.  What the user has in them stays, in its order.
 *
 * Sets variables of this process, which is about to become the program.
 * Single-threaded; no lock.
 */
#ifndef TOOLS_LOADER_H
#define TOOLS_LOADER_H

#include "launch.h"

/* The name of the shim, in @libdir or below it. */
#define LOADER_SHIM "libadverb-shim.so"

/*
 * How LD_PRELOAD names the shim, in @name of PATH_MAX bytes: by the loader's
 * word for the processor where that is of use.  A program of 32 bits then finds
 * an empty library, and its loader has nothing to complain of.  False, and *why
 * (borrowed): this machine's loader cannot load it.
 */
bool loader_shim(const char *libdir, char *name, const char **why);

#define LOADER_WHY (2 * PATH_MAX)

/*
 * Is a file of ours missing in @libdir, or unreadable: a library that programs
 * talk to; the shim?  A sentence without a full stop says which.
 */
bool loader_lacks_face(const char *libdir, char why[LOADER_WHY]);
bool loader_lacks_shim(const char *libdir, char why[LOADER_WHY]);

/* Sets the variables. */
void loader_set(const struct launch *l);

#endif
