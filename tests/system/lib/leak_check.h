/* SPDX-License-Identifier: BSD-2-Clause */
/* leak_check: counts the objects of a process that adverb must free when peers
 * end. */
#ifndef TESTS_SYSTEM_LIB_LEAK_CHECK_H
#define TESTS_SYSTEM_LIB_LEAK_CHECK_H

#include <stdbool.h>

struct leak_check {
	int threads, arenas; /* arenas: mapped, of any process */
	int files;	     /* descriptors, but for UDP sockets */
};

/* Counts the objects of this process into *h; ends the process on an error. */
void leak_check_get(struct leak_check *h);
/* Returns whether any count of *now is greater than that of *before. */
bool leak_check_more(const struct leak_check *now,
		     const struct leak_check *before);

#endif
