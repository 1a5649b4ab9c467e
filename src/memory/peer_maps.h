/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings, in this process, of memory that a peer shares.  They translate the
 * peer's addresses to addresses of this process.
 *
 * The peer publishes a row for each shared mapping of a file in which it has
 * registered memory, for at most SHARE_MAX mappings (hca/share.h).
 * peer_maps_look maps the memory of each new row.  If the memory cannot be
 * mapped, copies go by system calls.  When the peer withdraws a row, this
 * process no longer uses its mapping of the row, and the next peer_maps_look
 * unmaps it.
 *
 * Owner: an entry of host/local_peer.c.  Lock: that of the struct space_other
 * which uses the mappings.
 */
#ifndef MEMORY_PEER_MAPS_H
#define MEMORY_PEER_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "hca/share.h"

/* One mapping. */
struct alias {
	uint64_t va;	 /* address in the peer */
	uint64_t bytes;	 /* length of the mapping */
	uint8_t *at;	 /* address in this process; owned */
	uint32_t row;	 /* the index of the peer's row */
	uint32_t serial; /* the serial of the row when it was mapped */
	bool is_written; /* the mapping may be written */
};

struct peer_maps {
	const struct hca *target; /* a view of the peer's arena; not owned */
	int pid;		  /* the peer's process */
	uint32_t version;	  /* share_version at the last look */
	uint32_t count;		  /* the mappings in `of` */
	struct alias of[SHARE_MAX];
};

/* Initialises *a for the process pid, without mappings.  `target` must outlive
 * *a. */
void peer_maps_init(struct peer_maps *a, const struct hca *target, int pid);
/* Removes all mappings; peer_maps_look may be called again. */
void peer_maps_fini(struct peer_maps *a);
/* Unmaps the rows that the peer has withdrawn, and maps its new rows.  Makes
 * system calls only if the peer's rows have changed since the last call. */
void peer_maps_look(struct peer_maps *a);
/* Returns the address in this process of the range *v of the peer's memory.
 * NULL: no mapping covers the whole range, the mapping is read-only and
 * is_write is set, or the peer has withdrawn the row; then the caller copies by
 * system calls. */
uint8_t *peer_maps_at(const struct peer_maps *a, const struct space_vec *v,
		      bool is_write);

#endif
