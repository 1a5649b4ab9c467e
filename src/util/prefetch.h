/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ask for memory that will be used soon.  Who goes from structure to structure
 * waits for each; asked for together they come together.
 */
#ifndef ADVERB_UTIL_PREFETCH_H
#define ADVERB_UTIL_PREFETCH_H

#include <stddef.h>

#define PREFETCH_LINE 64

/* The lines of [p, p + bytes); p may be NULL or stale. */
static inline void prefetch(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PREFETCH_LINE)
		__builtin_prefetch((const char *)p + i, 1);
}

/* The same of what is only read, or which others read meanwhile. */
static inline void prefetch_read(const void *p, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += PREFETCH_LINE)
		__builtin_prefetch((const char *)p + i, 0);
}

#endif
