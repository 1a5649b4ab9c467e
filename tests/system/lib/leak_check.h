/* SPDX-License-Identifier: BSD-2-Clause */
/* holdings: what a process has that its peers' deaths must give back. */
#ifndef TESTS_SYSTEM_LIB_LEAK_CHECK_H
#define TESTS_SYSTEM_LIB_LEAK_CHECK_H

#include <stdbool.h>

struct leak_check {
	int threads, arenas; /* mapped */
	int files;	     /* that are no sockets for datagrams */
};

void leak_check_get(struct leak_check *h);
/* Is anything more than before? */
bool leak_check_more(const struct leak_check *now,
		     const struct leak_check *before);

#endif
