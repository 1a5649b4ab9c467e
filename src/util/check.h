/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assertions about adverb's own state.  CHECK stays on in release builds and
 * aborts with the file, the line and the condition: code whose invariant is
 * broken must not write into an application's memory.  DCHECK is for hot paths
 * and compiles to nothing with NDEBUG.
 */
#ifndef UTIL_CHECK_H
#define UTIL_CHECK_H

/* Prints the file, the line and the broken condition to stderr, and aborts. */
_Noreturn void check_fail(const char *file, int line, const char *cond);

#define CHECK(cond) ((cond) ? (void)0 : check_fail(__FILE__, __LINE__, #cond))

#ifdef NDEBUG
#define DCHECK(cond) ((void)sizeof(cond))
#else
#define DCHECK(cond) CHECK(cond)
#endif

#endif
