/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address spaces: the interface through which adverb executes requests on
 * application memory, of this process, of another process or of the simulator.
 * Memory that the application has unmapped is reported as -EFAULT and does not
 * crash the process.  The payload of a request is copied from or to the
 * program's memory without this interface only when the program posts inline
 * data or an atomic write.  The functions ibv_memcpy_to_dm and
 * ibv_memcpy_from_dm copy without this interface, too.
 *
 * Order: a write first copies all bytes except the tail, and then stores the
 * tail by one store, which is ordered after the copy.  The tail is the end of
 * the last range.  The length of the tail, space_tail bytes, is the largest
 * power of two, at most 8, for which the tail is aligned and lies in the range.
 * So a program that polls the last byte of a message does not see this byte
 * before the other bytes are there.
 */
#ifndef HCA_SPACE_H
#define HCA_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/crc.h"

enum space_atomic {
	SPACE_CAS,	 /* if old == compare: store swap_add */
	SPACE_FETCH_ADD, /* store old + swap_add */
};

/* A range of application memory: its first address and its length. */
struct space_vec {
	uint64_t va;
	uint64_t bytes;
};

/* Returns how many bytes at the end of the last range are stored last, by one
 * store.  The range is not empty. */
static inline uint64_t space_tail(const struct space_vec *last)
{
	uint64_t end = last->va + last->bytes, tail = 8;

	while (tail > last->bytes || end % tail)
		tail /= 2;
	return tail;
}

#define SPACE_VEC_MAX 40 /* ranges in one call, or of one side of a move */

/* A copy from one space to another.  Both sides have the same length in
 * bytes. */
struct space_move {
	const struct space_vec *to, *from; /* borrowed */
	uint32_t to_count, from_count;	   /* ranges, at most SPACE_VEC_MAX */
};

struct space;

/*
 * The copies of a space of another process return 0, or
 *	-EFAULT		the memory is unmapped, or read-only for a write
 *	-ESRCH		the process has ended
 *	-EPERM		the kernel no longer permits the access
 *	-ECANCELED	the process has revoked the access (hca/access.h)
 * Those of other spaces return 0 or -EFAULT.
 */
struct space_ops {
	/*
	 * Copies from src, which is adverb's memory, to n ranges, in the order
	 * that the top of this file states.  Returns 0, or an error of the list
	 * above; then some bytes may have been written.
	 */
	int (*write)(struct space *s, const struct space_vec *to, size_t n,
		     const void *src);
	/* Copies n ranges, one after the other, to dst, which is adverb's
	 * memory.  Returns 0 or an error of the list above. */
	int (*read)(struct space *s, const struct space_vec *from, size_t n,
		    void *dst);
	/*
	 * Executes an atomic of 8 naturally aligned bytes in host byte order,
	 * and stores their old value in *old.  Returns 0; -EFAULT; or -EPERM:
	 * nothing was done, and the caller has to ask the owner of the memory
	 * to execute the atomic.
	 */
	int (*atomic)(struct space *s, enum space_atomic op, uint64_t va,
		      uint64_t swap_add, uint64_t compare, uint64_t *old);
	/* Do the work of space_put and space_get for the peer's space; NULL:
	 * space_put and space_get copy through a buffer. */
	int (*put)(struct space *peer, struct space *own,
		   const struct space_move *m, size_t n, size_t *done);
	int (*get)(struct space *peer, struct space *own,
		   const struct space_move *m, size_t n, size_t *done);
	/*
	 * Does the work of `read`, and updates *crc with the bytes
	 * (util/crc.h).  NULL: space_read_crc calls `read` and then computes
	 * the CRC.
	 */
	int (*read_crc)(struct space *s, const struct space_vec *from, size_t n,
			void *dst, enum crc_kind kind, uint32_t *crc);
	/* Does the work of `write`, and updates *crc with the bytes.  NULL:
	 * space_write_crc calls `write` and computes the CRC. */
	int (*write_crc)(struct space *s, const struct space_vec *to, size_t n,
			 const void *src, enum crc_kind kind, uint32_t *crc);
	/* Does in advance the work that would take long in one of the calls
	 * above.  Called while no peer waits for the caller, and before the
	 * caller checks that the owner of the memory still runs, so that little
	 * time passes between this check and the copy.  NULL: there is no such
	 * work. */
	void (*refresh)(struct space *s);
	/* Is a `write` to these n ranges a system call?  NULL: no. */
	bool (*is_call)(struct space *s, const struct space_vec *to, size_t n);
};

/* The first member of every implementation's struct. */
struct space {
	const struct space_ops *ops;
	/* A space of another process: how many system calls have copied to or
	 * from it; wraps.  Protected by the lock under which the callers use
	 * the space. */
	uint32_t calls;
};

/* Is a write to these n ranges a system call? */
static inline bool space_is_call(struct space *s, const struct space_vec *to,
				 size_t n)
{
	return s->ops->is_call && s->ops->is_call(s, to, n);
}

/* Reads n ranges to dst, and updates *crc with the bytes (crc_update).  Returns
 * what `read` returns; after an error *crc has no meaning. */
static inline int space_read_crc(struct space *s, const struct space_vec *from,
				 size_t n, void *dst, enum crc_kind kind,
				 uint32_t *crc)
{
	uint64_t bytes = 0;
	int err;

	if (s->ops->read_crc)
		return s->ops->read_crc(s, from, n, dst, kind, crc);
	err = s->ops->read(s, from, n, dst);
	for (size_t i = 0; !err && i < n; i++)
		bytes += from[i].bytes;
	*crc = crc_update(kind, *crc, dst, bytes);
	return err;
}

/* Writes src to n ranges, and updates *crc with the bytes (crc_update). Returns
 * what `write` returns; after an error *crc has no meaning. */
static inline int space_write_crc(struct space *s, const struct space_vec *to,
				  size_t n, const void *src, enum crc_kind kind,
				  uint32_t *crc)
{
	uint64_t bytes = 0;

	if (s->ops->write_crc)
		return s->ops->write_crc(s, to, n, src, kind, crc);
	for (size_t i = 0; i < n; i++)
		bytes += to[i].bytes;
	*crc = crc_update(kind, *crc, src, bytes);
	return s->ops->write(s, to, n, src);
}

/*
 * Copies from the caller's own memory to a peer's memory.  Executes n moves one
 * after the other, each in the order that the top of this file states, with as
 * few system calls as possible.  Returns 0, or
 *	-EFAULT		the peer's memory of move *done is unmapped or read-only
 *	-ENXIO		the caller's own memory is unmapped or read-only
 *	-ESRCH		the peer's process has ended
 *	-EPERM		the kernel no longer permits the access
 *	-ECANCELED	the peer has revoked the access (hca/access.h)
 * The moves before *done are complete; some bytes of move *done may be copied.
 */
int space_put(struct space *peer, struct space *own, const struct space_move *m,
	      size_t n, size_t *done);
/* Copies from a peer's memory to the caller's own memory, in the order of
 * space_put and with the same return values. */
int space_get(struct space *peer, struct space *own, const struct space_move *m,
	      size_t n, size_t *done);

#endif
