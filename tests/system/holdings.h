/* SPDX-License-Identifier: BSD-2-Clause */
/* holdings: what a process has that its peers' deaths must give back. */
#ifndef SYSTEM_HOLDINGS_H
#define SYSTEM_HOLDINGS_H

#include <stdbool.h>

struct holdings {
	int threads, arenas; /* mapped */
	int files;	     /* that are no sockets for datagrams */
};

void holdings_get(struct holdings *h);
/* Is anything more than before? */
bool holdings_more(const struct holdings *now, const struct holdings *before);

#endif
