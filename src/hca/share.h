/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that peers of this host may map themselves: registered, and shared
 * pages of a file that the owner has open.  A row for each mapping, for as long
 * as a region lies in it; who maps it needs no system call to reach it.
 *
 * Of an address in a region at most one row tells, and what it tells is true of
 * the region that was registered last.  So peers look a row up after the key,
 * and look at its serial again before each use.
 *
 * Owner: the arena's process, under its ctx lock.  Peers only read, and what
 * they read is input.
 */
#ifndef HCA_SHARE_H
#define HCA_SHARE_H

#include "hca/hca.h"

#define SHARE_MAX 64 /* rows; memory beyond is reached by system calls */

struct share {
	shared_u32 serial;   /* 0: there is none; no two uses have the same */
	int32_t fd;	     /* of the owner, who has it for nothing else */
	uint32_t users;	     /* regions; the owner's */
	uint32_t is_written; /* pages may be written */
	uint64_t va, bytes;  /* in the owner's memory; whole pages */
	uint64_t offset;     /* of va in the file, bytes */
	uint64_t dev, ino;   /* st_dev and st_ino */
};

/*
 * A look at what lies behind memory takes system calls, so it is made without
 * the lock.  Others register meanwhile, and may have mapped other memory at
 * addresses of which the look says something: it is out of date then.  The
 * struct is the looker's, from share_look_begin to share_look_end, under the
 * ctx lock both.
 */
struct share_look {
	struct list node;   /* of hca->share_looks */
	uint64_t va, bytes; /* the addresses of which it says something */
	bool is_outdated;   /* a region that meets them was registered */
};
void share_look_begin(struct hca *h, struct share_look *l, uint64_t va,
		      uint64_t bytes);
void share_look_end(struct share_look *l);
/* What a region of [va, va + bytes) may do to the table. */
enum share_room {
	SHARE_FULL, /* nothing: each row is taken, and none tells of it */
	SHARE_FREE, /* take a row, as none tells of it */
	SHARE_MET,  /* share rows that tell of it, or have them withdrawn */
};
enum share_room share_room(const struct hca *h, uint64_t va, uint64_t bytes);
/*
 * A region of [va, va + bytes) is about to be registered, which lies in the
 * mapping `what`, of which fd, serial and users are not looked at.  The number
 * of the row that says so already, with one user more, for share_leave; 0: none
 * does, and share_enter is next.  `what` must be true of the region's own
 * addresses alone.
 */
uint32_t share_again(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what);
/*
 * A row for it; `what` NULL: it cannot be mapped.  `what` must be true of all
 * its addresses (struct share_look).  Rows that say something else of its place
 * are withdrawn.  Its number, and what->fd belongs to the table;
 * 0: it has none.
 */
uint32_t share_enter(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what);
/* No peer copies there on account of the region any more.  The descriptor to
 * close, or -1. */
int share_leave(struct hca *h, uint32_t number);
/* All descriptors: *at from 0 on; -1: there are no more. */
int share_next_fd(const struct hca *h, uint32_t *at);

/* ---- for peers, of a view that may be anything ---- */

/* Changes with every row; 0: there has been none. */
static inline uint32_t share_version(const struct hca *h)
{
	return shared_load(&h->shared->share_version);
}
/* The row, whole; its serial is 0 if there is none. */
struct share share_read(const struct hca *h, uint32_t row);
/* Is it still the one that was read? */
bool share_is(const struct hca *h, uint32_t row, uint32_t serial);

#endif
