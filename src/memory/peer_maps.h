/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another process's shared memory, mapped here as well, as far as it says that
 * it may be (hca/share.h): for those addresses, ours of the same bytes.
 *
 *	told -> mapped at the next look -> used -> withdrawn: not used any
 *	  `---> cannot be: system calls	   more, unmapped at the next look
 *
 * Owner: a struct space_other.  Lock: the progress lock.
 */
#ifndef MEMORY_PEER_MAPS_H
#define MEMORY_PEER_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

struct alias {
	uint64_t va, bytes; /* there */
	uint8_t *at;	    /* here */
	uint32_t row, serial;
	bool is_written;
};

struct peer_maps {
	const struct hca *target; /* borrowed */
	int pid;
	uint32_t version; /* of its shares, at the last look */
	uint32_t count;
	struct alias of[SHARE_MAX];
};

void peer_maps_init(struct peer_maps *a, const struct hca *target, int pid);
/* Unmap all; a look maps it anew. */
void peer_maps_fini(struct peer_maps *a);
/* Map what is new; system calls, if there is. */
void peer_maps_look(struct peer_maps *a);
/* Ours for all of the stretch; NULL: it has to go by system calls. */
uint8_t *peer_maps_at(const struct peer_maps *a, const struct space_vec *v,
		      bool is_write);

#endif
