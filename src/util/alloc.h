/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for structs that threads write without a common lock. */
#ifndef UTIL_ALLOC_H
#define UTIL_ALLOC_H

#include <stdlib.h>
#include <string.h>

/* Two cache lines, which processors fetch together. */
#define ALLOC_APART 128

/*
 * @bytes of zeroed memory that shares no cache line with other memory, so that
 * a thread which writes there does not slow down another; NULL: there is no
 * memory.  free() frees it.
 */
static inline void *alloc_apart(size_t bytes)
{
	size_t size = (bytes + ALLOC_APART - 1) & ~(size_t)(ALLOC_APART - 1);
	void *p = aligned_alloc(ALLOC_APART, size);

	return p ? memset(p, 0, size) : NULL;
}

#endif
