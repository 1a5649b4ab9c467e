/* SPDX-License-Identifier: BSD-2-Clause */
/* Macros for a function of the shim, which stands in for the function of libc
 * that has the same name, and calls that function. */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

/* The attribute of a function that the library exports. */
#define SHIM __attribute__((visibility("default")))

/* Defines next_##name, the address of the next definition of @name after the
 * shim's; NULL until shim_find has found it. */
#define SHIM_NEXT(name) static __typeof__(name) *next_##name

/* Looks up the next definition of `name` by dlsym, once, and keeps it in *word.
 * Returns false with errno ENOSYS if this libc has no such function. */
static inline bool shim_find(void *word, const char *name)
{
	void **next = word;

	if (!*next)
		*next = dlsym(RTLD_NEXT, name);
	if (!*next)
		errno = ENOSYS;
	return *next;
}

/* shim_find for the pointer that SHIM_NEXT defines. */
#define SHIM_FIND(name) shim_find(&next_##name, #name)

#endif
