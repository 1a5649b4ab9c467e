/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compiler includes this file before each source file (-include).  In glibc
 * from 2.38 on, calls of strtol, sscanf and similar functions become calls of
 * other functions (__isoc23_*, which also read "0b101").  Older glibc lacks
 * these functions, and does not load a library or program that calls them.
 * tests/abi/needs.py checks that all libraries and programs of adverb load with
 * glibc 2.34.
 */
#ifndef GLIBC_H
#define GLIBC_H

#ifdef __LP64__ /* lib/preload/i686 is built without a libc of 32 bits */
#include <features.h>
#endif

/* The macro's name until glibc 2.39, and its later name. */
#undef __GLIBC_USE_C2X_STRTOL
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#endif
