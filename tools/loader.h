/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader: sets the variables that make the dynamic loader load adverb's
 * libraries: LD_LIBRARY_PATH, LD_PRELOAD and, for AddressSanitizer's check of
 * LD_PRELOAD, ASAN_OPTIONS.  The user's values stay, in their order.
 *
 * The functions set variables of this process, which then executes the program.
 * Single-threaded; no lock.
 */
#ifndef TOOLS_LOADER_H
#define TOOLS_LOADER_H

#include "launch.h"

/* The file name of the shim. */
#define LOADER_SHIM "libadverb-shim.so"

/*
 * Puts the shim's name for LD_PRELOAD into @name of PATH_MAX bytes.  The name
 * contains $PLATFORM if the loader can replace that word: then a 32-bit program
 * finds an empty library, and its loader prints no error.  Returns false, and
 * the reason in *why (borrowed), if this machine's loader cannot load the shim.
 */
bool loader_shim(const char *libdir, char *name, const char **why);

#define LOADER_WHY (2 * PATH_MAX) /* bytes of a reason */

/* Is one of the three libraries missing in @libdir, or unreadable?  If so, @why
 * says which, as a sentence without a full stop. */
bool loader_lacks_library(const char *libdir, char why[LOADER_WHY]);
/* Is the shim missing in @libdir, or unreadable?  If so, @why says so, as a
 * sentence without a full stop. */
bool loader_lacks_shim(const char *libdir, char why[LOADER_WHY]);

/* Sets the variables for the libraries in l->libdir, and for the shim if
 * l->shim. */
void loader_set(const struct launch *l);

#endif
