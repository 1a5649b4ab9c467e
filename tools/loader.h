/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader: sets LD_LIBRARY_PATH and LD_PRELOAD, so that the dynamic loader loads
 * adverb's libraries, and ASAN_OPTIONS, so that AddressSanitizer accepts a
 * preloaded library before its own.  The user's values stay, in their order.
 *
 * loader_set changes the environment of this process, which then executes the
 * program.  The other functions change no variable.  Single-threaded; no lock.
 */
#ifndef TOOLS_LOADER_H
#define TOOLS_LOADER_H

#include "launch.h"

/* The file name of the shim. */
#define LOADER_SHIM "libadverb-shim.so"

/*
 * Puts the shim's name for LD_PRELOAD into @name of PATH_MAX bytes.  The name
 * contains $PLATFORM if the loader finds the shim by such a name: then a 32-bit
 * program finds an empty library, and its loader prints no error.  Returns
 * false, and the reason in *why, if this machine's loader cannot load the shim.
 * The reason is borrowed, and valid until the next call of a function of
 * dlfcn.h.
 */
bool loader_shim(const char *libdir, char *name, const char **why);

#define LOADER_WHY (2 * PATH_MAX) /* bytes of a reason */

/* Is one of the three libraries missing in @libdir, unreadable, or on a file
 * system that is mounted with the option noexec?  If so, @why says which, as a
 * sentence without a full stop. */
bool loader_lacks_library(const char *libdir, char why[LOADER_WHY]);
/* Is the shim missing in @libdir, unreadable, or on a file system that is
 * mounted with the option noexec?  If so, @why says which, as a sentence
 * without a full stop. */
bool loader_lacks_shim(const char *libdir, char why[LOADER_WHY]);

/* Sets the variables for the libraries in l->libdir, for the folders of
 * vendor.h, and for the shim if l->shim.  Preloads the libraries if
 * l->preload. */
void loader_set(const struct launch *l);

#endif
