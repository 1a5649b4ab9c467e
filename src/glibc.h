/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Before every file of the tree, by the compiler's -include: glibc from 2.38 on
 * makes strtol, sscanf and their kin other functions of its own (__isoc23_*,
 * which read "0b101" too), and then what was built there would load nowhere
 * else.  tests/abi/needs.py looks whether all that we built loads with 2.34.
 */
#ifndef GLIBC_H
#define GLIBC_H

#ifdef __LP64__ /* lib/preload/i686 is built without a libc of 32 bits */
#include <features.h>
#endif

/* The name until 2.39, and since. */
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#endif
