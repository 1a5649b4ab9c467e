/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loader: what the dynamic loader is told, so that a program gets adverb's
 * libraries: LD_LIBRARY_PATH and LD_PRELOAD.  What the user has in them stays,
 * in its order.
 *
 * Sets variables of this process, which is about to become the program.
 * Single-threaded; no lock.
 */
#ifndef TOOLS_LOADER_H
#define TOOLS_LOADER_H

#include "launch.h"

/* The name of the shim. */
#define LOADER_SHIM "libadverb-shim.so"

/* Sets the variables. */
void loader_set(const struct launch *l);

#endif
