/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader: the variables by which the dynamic loader gives a program adverb's
 * libraries: LD_LIBRARY_PATH, LD_PRELOAD and, for AddressSanitizer's check of
 * LD_PRELOAD, ASAN_OPTIONS.  The values of the user stay, in their order.
 *
 * Sets variables of this process, which then executes the program.
 * Single-threaded; no lock.
 */
#ifndef TOOLS_LOADER_H
#define TOOLS_LOADER_H

#include "launch.h"

/* The file name of the shim. */
#define LOADER_SHIM "libadverb-shim.so"

/*
 * The shim's name for LD_PRELOAD, in @name of PATH_MAX bytes.  With $PLATFORM,
 * where the loader knows that: then a 32-bit program finds an empty library,
 * and its loader prints no error.  False, and the reason in *why (borrowed):
 * the loader of this machine cannot load the shim.
 */
bool loader_shim(const char *libdir, char *name, const char **why);

#define LOADER_WHY (2 * PATH_MAX) /* bytes of a sentence */

/* Is one of the three libraries missing in @libdir, or unreadable?  True: a
 * sentence without a full stop in @why says which. */
bool loader_lacks_library(const char *libdir, char why[LOADER_WHY]);
/* Is the shim missing in @libdir, or unreadable?  True: a sentence without a
 * full stop in @why says so. */
bool loader_lacks_shim(const char *libdir, char why[LOADER_WHY]);

/* Sets the variables as *l says. */
void loader_set(const struct launch *l);

#endif
