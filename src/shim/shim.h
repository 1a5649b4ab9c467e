/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the shim share: how a function stands before libc's. */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>

#define SHIM __attribute__((visibility("default")))

/* The next definition of @name after ours, once it was looked for. */
#define SHIM_NEXT(name) static __typeof__(name) *next_##name

static inline bool shim_find(void *word, const char *name)
{
	void **next = word;

	if (!*next)
		*next = dlsym(RTLD_NEXT, name);
	if (!*next)
		errno = ENOSYS;
	return *next;
}

/* False and ENOSYS: this libc has none. */
#define SHIM_FIND(name) shim_find(&next_##name, #name)

#endif
