/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for structures that different threads write at the same time. */
#ifndef UTIL_ALLOC_H
#define UTIL_ALLOC_H

#include <stdlib.h>
#include <string.h>

/* Two cache lines, since processors fetch two lines together. */
#define ALLOC_APART 128

/*
 * Returns @bytes bytes of zeroed memory, which the caller frees by free().  The
 * memory shares no cache line with other memory, so that a thread that writes
 * there does not slow down the users of other memory.  NULL: out of memory.
 */
static inline void *alloc_apart(size_t bytes)
{
	size_t size = (bytes + ALLOC_APART - 1) & ~(size_t)(ALLOC_APART - 1);
	void *p = aligned_alloc(ALLOC_APART, size);

	return p ? memset(p, 0, size) : NULL;
}

#endif
