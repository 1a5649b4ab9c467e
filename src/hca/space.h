/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces: the one interface through which adverb touches application
 * memory: this process's own, another process's, or the simulator's.  It
 * never crashes on memory that the application has unmapped: it answers
 * -EFAULT, and nothing else in adverb dereferences an application's address.
 *
 * Order: a write puts everything but the last <= 8 bytes of the last stretch
 * first, then those by one store that is ordered after the rest (8 bytes
 * when the end is 8-aligned, else the largest aligned power of two), so that
 * a program polling the last byte never sees it before the rest.
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

/* A stretch of application memory. */
struct space_vec {
	uint64_t va;
	uint64_t bytes;
};

/* How many bytes at the end of the last stretch, which is not empty, are stored
 * last, by one store. */
static inline uint64_t space_tail(const struct space_vec *last)
{
	uint64_t end = last->va + last->bytes, tail = 8;

	while (tail > last->bytes || end % tail)
		tail /= 2;
	return tail;
}

#define SPACE_VEC_MAX 40 /* stretches in one call, or of a move's side */

/* One message from space to space: both sides are equally long. */
struct space_move {
	const struct space_vec *to, *from;
	uint32_t to_count, from_count;
};

struct space;

struct space_ops {
	/*
	 * The ordered copy from src (ours) to n stretches.  0 or -EFAULT; on
	 * -EFAULT some bytes may have been written.
	 */
	int (*write)(struct space *s, const struct space_vec *to, size_t n,
		     const void *src);
	/* Copy n stretches to dst (ours), in order.  0 or -EFAULT. */
	int (*read)(struct space *s, const struct space_vec *from, size_t n,
		    void *dst);
	/*
	 * One naturally aligned 8-byte atomic in host order; *old gets the
	 * value found.  0 or -EFAULT; or -EPERM: nothing was done, as only
	 * the owner of the memory can.
	 */
	int (*atomic)(struct space *s, enum space_atomic op, uint64_t va,
		      uint64_t swap_add, uint64_t compare, uint64_t *old);
	/* Both are space_put and space_get; NULL: by a buffer. */
	int (*put)(struct space *peer_area, struct space *near,
		   const struct space_move *m, size_t n, size_t *done);
	int (*get)(struct space *peer_area, struct space *near,
		   const struct space_move *m, size_t n, size_t *done);
	/*
	 * As read, and *crc gets on by what was copied (util/crc.h).  NULL:
	 * space_read_crc does it in two steps.
	 */
	int (*read_crc)(struct space *s, const struct space_vec *from, size_t n,
			void *dst, uint32_t *crc);
	/* Before any of these, while nobody waits for us: what takes time to be
	 * prepared.  NULL: nothing does. */
	void (*refresh)(struct space *s);
};

/* First member of every implementation. */
struct space {
	const struct space_ops *ops;
};

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
 * Straight from near, which is the caller's own memory, to far, or from far
 * to near: n moves in order, each an ordered copy, in as few system calls as
 * they take.  0; or
 *	-EFAULT	the far side of move *done is not there (or not to be written)
 *	-ENXIO	the near side of it is not
 *	-ESRCH	the process whose memory far is has gone
 *	-EPERM	the kernel does not let us any more
 * The moves before *done are made; of it, some bytes may be.
 */
int space_put(struct space *peer_area, struct space *near,
	      const struct space_move *m, size_t n, size_t *done);
int space_get(struct space *peer_area, struct space *near,
	      const struct space_move *m, size_t n, size_t *done);

#endif
