/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of memory that peers of this host may map: registered memory that
 * consists of shared pages of a file which the owner has open.  The table has a
 * row for each such mapping, for as long as a region lies in the mapping.  A
 * peer that maps the memory needs no system call to access it.
 *
 * At most one row describes an address in a region, and the row is true for the
 * region that was registered last.  So peers look a row up after the key, and
 * compare its serial again before each use.
 *
 * Owner: the arena's process, under its ctx lock.  Peers only read the table,
 * which is input to them.
 */
#ifndef HCA_SHARE_H
#define HCA_SHARE_H

#include "hca/hca.h"

#define SHARE_MAX 64 /* rows; peers access more memory by system calls */

struct share {
	shared_u32 serial;   /* differs between uses of rows; 0: unused */
	int32_t fd;	     /* the owner's descriptor, for this row alone */
	uint32_t users;	     /* how many regions use the row; the owner's */
	uint32_t is_written; /* the pages may be written */
	uint64_t va, bytes;  /* whole pages of the owner's memory */
	uint64_t offset;     /* the offset of va in the file, in bytes */
	uint64_t dev, ino;   /* the file's st_dev and st_ino */
};

/*
 * The owner finds out which file lies behind memory by system calls, without
 * the ctx lock.  Other threads may meanwhile map other memory there and
 * register it; the result is out of date then.  A struct share_look notes such
 * a registration.  The caller owns the struct and keeps it from
 * share_look_begin to share_look_end, which it calls under the ctx lock.
 */
struct share_look {
	struct list node;   /* in hca->share_looks */
	uint64_t va, bytes; /* the addresses that are examined */
	bool is_outdated;   /* a region at such an address was registered */
};
/* Begins to note registrations that meet [va, va + bytes). */
void share_look_begin(struct hca *h, struct share_look *l, uint64_t va,
		      uint64_t bytes);
/* Ends the notes.  The caller reads l->is_outdated before it gives the ctx lock
 * back. */
void share_look_end(struct share_look *l);
/* The changes of the table that the registration of a region may make. */
enum share_room {
	SHARE_FULL, /* nothing: no row is free, and no row meets the region */
	SHARE_FREE, /* a free row may be used: no row meets the region */
	SHARE_MET,  /* rows that meet the region may be used or withdrawn */
};
/* Says which changes the registration of [va, va + bytes) may make.  Under the
 * ctx lock. */
enum share_room share_room(const struct hca *h, uint64_t va, uint64_t bytes);
/*
 * Looks for a row for a region [va, va + bytes) that is about to be registered
 * and lies in the mapping `what`, whose fd, serial and users are not read.
 * `what` must be true for the region's own addresses alone.  Returns the number
 * of a row that has the same mapping, which gets one user more until
 * share_leave; 0: there is none, and the caller calls share_enter.
 */
uint32_t share_again(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what);
/*
 * Makes a row for a region [va, va + bytes) that is about to be registered;
 * `what` is NULL if the region cannot be mapped.  `what` must be true for all
 * addresses of the mapping (struct share_look).  Rows with another mapping of
 * these addresses are withdrawn.  Returns the row's number, and what->fd then
 * belongs to the table; 0: there is no row, and what->fd stays the caller's.
 */
uint32_t share_enter(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what);
/* A region no longer uses a row; the caller has waited for the peers that
 * copied by the region's keys.  Returns a descriptor that the caller closes, or
 * -1. */
int share_leave(struct hca *h, uint32_t number);
/* The next descriptor of the table; *at begins at 0.  -1: there are no more. */
int share_next_fd(const struct hca *h, uint32_t *at);

/* ---- for peers, whose view of the arena is input ---- */

/* A number that changes whenever a row changes; 0: no row was ever used. */
static inline uint32_t share_version(const struct hca *h)
{
	return shared_load(&h->shared->share_version);
}
/* A consistent copy of the row; its serial is 0 if the row is unused. */
struct share share_read(const struct hca *h, uint32_t row);
/* Is the row still in the use that has this serial? */
bool share_is(const struct hca *h, uint32_t row, uint32_t serial);

#endif
