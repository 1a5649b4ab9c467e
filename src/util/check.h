/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assertions about ourselves.  CHECK stays on in release builds and aborts
 * with the place and the condition: a broken invariant must never go on to
 * write into an application's memory.  DCHECK is for hot paths and vanishes
 * with NDEBUG.
 */
#ifndef UTIL_CHECK_H
#define UTIL_CHECK_H

/* Print the broken condition to stderr and abort. */
_Noreturn void check_fail(const char *file, int line, const char *cond);

#define CHECK(cond) ((cond) ? (void)0 : check_fail(__FILE__, __LINE__, #cond))

#ifdef NDEBUG
#define DCHECK(cond) ((void)sizeof(cond))
#else
#define DCHECK(cond) CHECK(cond)
#endif

#endif
