/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process's shared memory, mapped here as well, as far as it says that
 * it may be (hca/share.h): for those addresses, ours of the same bytes.
 *
 *	told -> mapped at the next look -> used -> withdrawn: not used any
 *	  `---> cannot be: system calls	   more, unmapped at the next look
 *
 * Owner: a struct space_other.  Lock: the lane's.
 */
#ifndef HOST_ALIASES_H
#define HOST_ALIASES_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

struct alias {
	uint64_t va, bytes; /* there */
	uint8_t *at;	    /* here */
	uint32_t row, serial;
	bool is_written;
};

struct aliases {
	const struct hca *far; /* borrowed */
	int pid;
	uint32_t version; /* of its shares, at the last look */
	uint32_t count;
	struct alias of[SHARE_MAX];
};

void aliases_init(struct aliases *a, const struct hca *far, int pid);
/* Unmap all; a look maps it anew. */
void aliases_fini(struct aliases *a);
/* Map what is new; system calls, if there is. */
void aliases_look(struct aliases *a);
/* Ours for all of the stretch; NULL: it has to go by system calls. */
uint8_t *aliases_at(const struct aliases *a, const struct space_vec *v,
		    bool is_write);

#endif
