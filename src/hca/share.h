/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of memory that peers of this host may map: registered memory that
 * is a shared mapping of a file.  The table has a row for each such mapping, as
 * long as a region lies in the mapping.  A peer that maps the memory needs no
 * system call to access it.
 *
 * If several rows contain an address in a region, they agree about the file,
 * the offset in the file, and is_written.  These rows are true for the region
 * that was last registered at the address.  So a peer first judges the key, and
 * then looks for a row that contains the addresses.  It compares the row's
 * serial again before each use.
 *
 * Owner: the arena's process, under its ctx lock.  Peers only read the table,
 * which is input to them.
 */
#ifndef HCA_SHARE_H
#define HCA_SHARE_H

#include "hca/hca.h"

#define SHARE_MAX 64 /* rows; peers access more memory by system calls */

/* A row of the table. */
struct share {
	/* Differs between all uses of rows; 0: unused or withdrawn. */
	shared_u32 serial;
	int32_t fd;	     /* the owner's descriptor of the file, owned */
	uint32_t users;	     /* how many regions use the row */
	uint32_t is_written; /* the pages may be written */
	uint64_t va, bytes;  /* whole pages of the owner's memory */
	uint64_t offset;     /* the offset of va in the file, in bytes */
	uint64_t dev, ino;   /* the file's st_dev and st_ino */
};

/*
 * The owner finds the file behind memory by system calls, without the ctx lock.
 * Meanwhile other threads may map other memory there and register it, and then
 * the result is out of date.  A struct share_look notes such registrations from
 * share_look_begin to share_look_end, both of which the caller calls under the
 * ctx lock.  The caller owns the struct.
 */
struct share_look {
	struct list node;   /* in hca->share_looks */
	uint64_t va, bytes; /* the addresses that are examined */
	bool is_outdated;   /* a region at such an address was registered */
};
/* Begins to note registrations of regions that overlap [va, va + bytes). */
void share_look_begin(struct hca *h, struct share_look *l, uint64_t va,
		      uint64_t bytes);
/* Stops noting registrations in *l.  The caller reads l->is_outdated before it
 * releases the ctx lock. */
void share_look_end(struct share_look *l);
/* The changes of the table that the registration of a region may make. */
enum share_room {
	SHARE_FULL, /* none: no row overlaps the region, and no row is free */
	SHARE_FREE, /* no row overlaps the region; a free row may be used */
	SHARE_MET, /* a row that overlaps the region may be used or withdrawn */
};
/* Returns which changes the registration of [va, va + bytes) may make.  Called
 * under the ctx lock. */
enum share_room share_room(const struct hca *h, uint64_t va, uint64_t bytes);
/*
 * Looks for a row for a region [va, va + bytes) that is about to be registered
 * and lies in the mapping *what, whose fd, serial and users are not read.
 * *what needs to be true only for the region's own addresses.  Returns the
 * number of a row with the same mapping, which the region uses until
 * share_leave; 0: there is none, and the caller calls share_enter.
 */
uint32_t share_again(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what);
/*
 * Makes a row for a region [va, va + bytes) that is about to be registered and
 * lies in the mapping *what, which must be true for all addresses of the
 * mapping (struct share_look).  what NULL: peers cannot map the region, and no
 * row is made.  Withdraws the rows that overlap the mapping and disagree with
 * *what or, if what is NULL, all rows that overlap the region.
 * Returns the number of the row, which owns what->fd from now on; 0: there is
 * no row, and the caller keeps what->fd.
 */
uint32_t share_enter(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what);
/* Ends a region's use of the row `number`; 0: does nothing.  The caller has
 * waited for the peers that copied by the region's keys.  Returns a descriptor
 * that the caller closes, or -1. */
int share_leave(struct hca *h, uint32_t number);
/* Returns the next descriptor of the table; -1: there are no more.  *at is 0 at
 * the first call. */
int share_next_fd(const struct hca *h, uint32_t *at);

/* ---- for peers, to whom the table is input ---- */

/* Returns a number that changes whenever a row changes; 0: no row was ever
 * used. */
static inline uint32_t share_version(const struct hca *h)
{
	return shared_load(&h->shared->share_version);
}
/* Returns a copy of the row.  The copy's serial is 0 if the row is unused or
 * withdrawn, changes during the copy, or does not lie in the arena; otherwise
 * the copy is consistent. */
struct share share_read(const struct hca *h, uint32_t row);
/* Is the row still in the use that has this serial? */
bool share_is(const struct hca *h, uint32_t row, uint32_t serial);

#endif
