/* SPDX-License-Identifier: BSD-2-Clause */
/* leak_check: counts the objects that adverb must free in this process when the
 * process's peers end. */
#ifndef TESTS_SYSTEM_LIB_LEAK_CHECK_H
#define TESTS_SYSTEM_LIB_LEAK_CHECK_H

#include <stdbool.h>

struct leak_check {
	/* threads: the threads of this process.  arenas: the mappings of arenas
	 * in this process, whichever process owns the arena. */
	int threads, arenas;
	int files; /* descriptors of this process, without UDP sockets */
};

/* Counts the objects of this process into *h.  If /proc cannot be read, prints
 * a message and exits with status 1. */
void leak_check_get(struct leak_check *h);
/* Returns whether any count of *now is greater than that of *before. */
bool leak_check_more(const struct leak_check *now,
		     const struct leak_check *before);

#endif
