/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces: the only interface through which adverb accesses application
 * memory, of this process, of another process or of the simulator.  Memory that
 * the application has unmapped is reported as -EFAULT and causes no signal.  No
 * other code in adverb dereferences an application's address.
 *
 * Order: a write first copies all but the last space_tail bytes of the last
 * range, and then stores those by one store that is ordered after the copy: 8
 * bytes if the range ends at a multiple of 8, else the largest power of two
 * that is aligned.  So a program that polls the last byte never sees it before
 * the rest.
 */
#ifndef HCA_SPACE_H
#define HCA_SPACE_H

#include <stddef.h>
#include <stdint.h>

#include "util/crc.h"

enum space_atomic {
	SPACE_CAS,	 /* if old == compare: store swap_add */
	SPACE_FETCH_ADD, /* store old + swap_add */
};

/* A range of application memory. */
struct space_vec {
	uint64_t va;
	uint64_t bytes;
};

/* How many bytes at the end of the last range, which is not empty, are stored
 * last, by one store. */
static inline uint64_t space_tail(const struct space_vec *last)
{
	uint64_t end = last->va + last->bytes, tail = 8;

	while (tail > last->bytes || end % tail)
		tail /= 2;
	return tail;
}

#define SPACE_VEC_MAX 40 /* ranges in one call, or of one side of a move */

/* A copy from one space to another; both sides have the same length. */
struct space_move {
	const struct space_vec *to, *from;
	uint32_t to_count, from_count;
};

struct space;

struct space_ops {
	/*
	 * Copies from src, adverb's memory, to n ranges in the order stated
	 * above.  0 or -EFAULT; on -EFAULT some bytes may have been written.
	 */
	int (*write)(struct space *s, const struct space_vec *to, size_t n,
		     const void *src);
	/* Copies n ranges, in order, to dst, adverb's memory.  0 or -EFAULT. */
	int (*read)(struct space *s, const struct space_vec *from, size_t n,
		    void *dst);
	/*
	 * One naturally aligned 8-byte atomic in host order; *old becomes the
	 * value before it.  0 or -EFAULT; -EPERM: nothing was done, since only
	 * the owner of the memory can execute the atomic.
	 */
	int (*atomic)(struct space *s, enum space_atomic op, uint64_t va,
		      uint64_t swap_add, uint64_t compare, uint64_t *old);
	/* space_put and space_get; NULL: these copy by a buffer. */
	int (*put)(struct space *peer, struct space *own,
		   const struct space_move *m, size_t n, size_t *done);
	int (*get)(struct space *peer, struct space *own,
		   const struct space_move *m, size_t n, size_t *done);
	/*
	 * Does the work of `read`, and updates *crc with the bytes
	 * (util/crc.h).  NULL: space_read_crc reads first and computes the CRC
	 * then.
	 */
	int (*read_crc)(struct space *s, const struct space_vec *from, size_t n,
			void *dst, uint32_t *crc);
	/* Does what would take long in a call above.  The caller, which no peer
	 * waits for, checks then that the owner of the memory lives, so that
	 * little time passes between the check and a copy.  NULL: there is
	 * nothing to prepare. */
	void (*refresh)(struct space *s);
};

/* The first member of every implementation's struct. */
struct space {
	const struct space_ops *ops;
	/* How many system calls space_put and space_get have made for this
	 * space; wraps.  Under the lock of the space's user. */
	uint32_t calls;
};

/* Reads n ranges to dst, and updates *crc with the bytes.  0 or -EFAULT. */
static inline int space_read_crc(struct space *s, const struct space_vec *from,
				 size_t n, void *dst, uint32_t *crc)
{
	uint64_t bytes = 0;
	int err;

	if (s->ops->read_crc)
		return s->ops->read_crc(s, from, n, dst, crc);
	err = s->ops->read(s, from, n, dst);
	for (size_t i = 0; !err && i < n; i++)
		bytes += from[i].bytes;
	*crc = crc32_update(*crc, dst, bytes);
	return err;
}

/*
 * Copies from the caller's own memory to a peer's memory.  Executes n moves in
 * order, each an ordered copy, in as few system calls as possible.  0; or
 *	-EFAULT	the peer's memory of move *done is unmapped or read-only
 *	-ENXIO	the caller's own memory is unmapped or read-only
 *	-ESRCH	the peer's process has ended
 *	-EPERM	the kernel no longer permits the access
 * The moves before *done are complete; some bytes of move *done may be copied.
 */
int space_put(struct space *peer, struct space *own, const struct space_move *m,
	      size_t n, size_t *done);
/* Copies from a peer's memory to the caller's own memory, with the order and
 * the results of space_put. */
int space_get(struct space *peer, struct space *own, const struct space_move *m,
	      size_t n, size_t *done);

#endif
