/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of a peer's shared memory in this process, of the rows that the peer
 * publishes (hca/share.h): they translate the peer's addresses to addresses of
 * this process.
 *
 *	published -> mapped at the next look -> used -> withdrawn: not used,
 *	  `---> not mappable: system calls	   unmapped at the next look
 *
 * Owner: a struct space_other, and its lock.
 */
#ifndef MEMORY_PEER_MAPS_H
#define MEMORY_PEER_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

/* One mapping. */
struct alias {
	uint64_t va;	 /* address in the peer */
	uint64_t bytes;	 /* length */
	uint8_t *at;	 /* address in this process */
	uint32_t row;	 /* the index of the peer's row */
	uint32_t serial; /* the serial of the row when it was mapped */
	bool is_written; /* the mapping may be written */
};

struct peer_maps {
	const struct hca *target; /* a view of the peer's arena; not owned */
	int pid;
	uint32_t version; /* share_version at the last look */
	uint32_t count;
	struct alias of[SHARE_MAX];
};

/* Initialises a without mappings; `target` must outlive it. */
void peer_maps_init(struct peer_maps *a, const struct hca *target, int pid);
/* Removes all mappings; peer_maps_look may be called again. */
void peer_maps_fini(struct peer_maps *a);
/* Unmaps the rows that the peer has withdrawn and maps new ones; makes system
 * calls only if the peer's rows have changed. */
void peer_maps_look(struct peer_maps *a);
/* Returns the address in this process of a whole stretch of the peer's memory,
 * or NULL: then system calls have to copy. */
uint8_t *peer_maps_at(const struct peer_maps *a, const struct space_vec *v,
		      bool is_write);

#endif
