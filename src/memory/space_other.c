/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/space_other.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory/peer_maps.h"
#include "memory/copy_revocable.h"
#include "util/bits.h"
#include "util/check.h"

/* The most stretches on one side of a call: enough for 32 moves of two pieces.
 * The kernel takes up to 1024, but they are on the stack of a program's thread.
 */
#define STRETCHES 72
#define PAGE	  4096u

/* One side of a call. */
struct call_side {
	struct iovec iov[STRETCHES];
	size_t at;    /* the first iovec that is not copied yet */
	size_t count; /* iovecs in iov */
};

/* Both sides of a call, for several moves. */
struct batch {
	struct call_side local;	 /* memory of this process */
	struct call_side target; /* memory of the other process */
	uint64_t bytes;		 /* bytes left to copy */
};

static struct space_other *other_of(struct space *s)
{
	return CONTAINER_OF(s, struct space_other, space);
}

/* Does not zero the iovecs: a batch is too large to be zeroed each time. */
static void begin_batch(struct batch *b)
{
	b->local.at = b->local.count = b->target.at = b->target.count = 0;
	b->bytes = 0;
}

static void add_piece(struct call_side *s, uint64_t va, uint64_t bytes)
{
	if (bytes)
		s->iov[s->count++] =
			(struct iovec){(void *)(uintptr_t)va, bytes};
}

static uint64_t add_all(struct call_side *s, const struct space_vec *v,
			size_t n)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; bytes += v[i++].bytes)
		add_piece(s, v[i].va, v[i].bytes);
	return bytes;
}

/* Splits the last stretch of a written side, so that its tail is stored last
 * (hca/space.h). */
static void split_tail(struct call_side *s)
{
	struct iovec *last = &s->iov[s->count - 1];
	struct space_vec v = {(uintptr_t)last->iov_base, last->iov_len};
	uint64_t tail = space_tail(&v);

	if (tail == v.bytes)
		return;
	last->iov_len -= tail;
	add_piece(s, v.va + last->iov_len, tail);
}

static bool has_room(const struct batch *b, const struct space_move *m)
{
	return b->local.count + m->to_count + m->from_count + 1 <= STRETCHES &&
	       b->target.count + m->to_count + m->from_count + 1 <= STRETCHES;
}

static void put_in(struct batch *b, const struct space_move *m, bool is_put)
{
	struct call_side *to = is_put ? &b->target : &b->local;
	struct call_side *from = is_put ? &b->local : &b->target;
	uint64_t bytes = add_all(from, m->from, m->from_count);
	uint64_t same = add_all(to, m->to, m->to_count);

	CHECK(bytes == same);
	if (bytes)
		split_tail(to);
	b->bytes += bytes;
}

static void advance_side(struct call_side *s, uint64_t bytes)
{
	while (bytes && s->at < s->count) {
		struct iovec *v = &s->iov[s->at];
		uint64_t n = bits_min_u64(bytes, v->iov_len);

		v->iov_base = (uint8_t *)v->iov_base + n;
		v->iov_len -= n;
		bytes -= n;
		if (!v->iov_len)
			s->at++;
	}
}

static ssize_t call_kernel(struct space_other *o, struct batch *b, bool is_put)
{
	const struct iovec *local = &b->local.iov[b->local.at];
	const struct iovec *target = &b->target.iov[b->target.at];
	size_t n = b->local.count - b->local.at,
	       m = b->target.count - b->target.at;

	o->space.calls++;
	return is_put ? process_vm_writev(o->pid, local, n, target, m, 0)
		      : process_vm_readv(o->pid, local, n, target, m, 0);
}

/* Returns 0, -errno of the call that failed, or -ECANCELED if the owner of the
 * memory has revoked the access. */
static int run_batch(struct space_other *o, struct batch *b, bool is_put)
{
	while (b->bytes) {
		ssize_t n;

		if (o->access && access_is_revoked(o->access))
			return -ECANCELED;
		n = call_kernel(o, b, is_put);
		if (n <= 0)
			return n < 0 ? -errno : -EFAULT;
		b->bytes -= (uint64_t)n;
		if (b->bytes) {
			advance_side(&b->local, (uint64_t)n);
			advance_side(&b->target, (uint64_t)n);
		}
	}
	return 0;
}

/* Can each stretch of process pid's memory be read?  Reads a byte of each
 * page. */
static bool is_readable(pid_t pid, const struct space_vec *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t at = v[i].va, end = at + v[i].bytes;

		for (; at < end; at = (at | (PAGE - 1)) + 1) {
			uint8_t byte;
			struct iovec to = {&byte, 1};
			struct iovec from = {(void *)(uintptr_t)at, 1};

			if (process_vm_readv(pid, &to, 1, &from, 1, 0) != 1)
				return false;
		}
	}
	return true;
}

/*
 * Finds out whose memory was not accessible.  Returns -EFAULT if it was that of
 * the other process, or -ENXIO if it was that of this process.  Only the source
 * can be tried without changing memory; if it is readable, the fault was at the
 * destination.
 */
static int blame_side(struct space_other *o, const struct space_move *m,
		      bool is_put)
{
	pid_t pid = is_put ? getpid() : o->pid;
	bool is_there = is_readable(pid, m->from, m->from_count);

	return is_there == is_put ? -EFAULT : -ENXIO;
}

/* Makes the n moves at m, each by a call of its own.  @b: memory for a batch,
 * which is too large to be twice on the stack of a program's thread. */
static int one_by_one(struct space_other *o, struct batch *b,
		      const struct space_move *m, size_t n, size_t *done,
		      bool is_put)
{
	for (size_t i = 0; i < n; i++, (*done)++) {
		int err;

		begin_batch(b);
		put_in(b, &m[i], is_put);
		err = run_batch(o, b, is_put);
		if (err == -EFAULT)
			err = blame_side(o, &m[i], is_put);
		if (err)
			return err;
	}
	return 0;
}

/* Translates the target's stretches to addresses of this process; false: a
 * stretch is not mapped or, with is_put, not writable. */
static bool translate_target(const struct space_other *o,
			     const struct space_vec *target, uint32_t count,
			     bool is_put, struct space_vec *ours)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *at =
			peer_maps_at(o->peer_maps, &target[i], is_put);

		if (!at)
			return false;
		ours[i] = (struct space_vec){(uintptr_t)at, target[i].bytes};
	}
	return true;
}

static enum copy_revocable_end move_mapped(const struct space_other *o,
					   const struct copy_revocable *l,
					   const struct space_move *m,
					   bool is_put)
{
	struct space_vec ours[SPACE_VEC_MAX];
	struct space_move here = *m;

	if (!translate_target(o, is_put ? m->to : m->from,
			      is_put ? m->to_count : m->from_count, is_put,
			      ours))
		return COPY_REVOCABLE_FAULT;
	if (is_put)
		here.to = ours;
	else
		here.from = ours;
	return copy_revocable_move(l, &here);
}

/* May this thread copy to and from mappings?  Initialises *l if so. */
static bool can_copy_mapped(const struct space_other *o,
			    struct copy_revocable *l)
{
	return o->peer_maps && o->peer_maps->count && o->access &&
	       copy_revocable_take(l, &o->access->touches, ACCESS_REVOKED);
}

/*
 * Makes moves by the mappings of the other process's memory, up to the first
 * move that needs memory without such a mapping, or that faults.  Adds the
 * number of moves made to *done.  The caller makes the remaining moves by
 * system calls, which also tell which side faults.  Returns 0, or -ECANCELED if
 * the owner of the memory has revoked the access.
 */
static int move_all_mapped(struct space_other *o, const struct space_move *m,
			   size_t n, size_t *done, bool is_put)
{
	enum copy_revocable_end end = COPY_REVOCABLE_DONE;
	struct copy_revocable l;

	if (!can_copy_mapped(o, &l))
		return 0;
	access_copy_by(o->access, ACCESS_BY_RSEQ);
	while (*done < n && !end) {
		end = move_mapped(o, &l, &m[*done], is_put);
		*done += !end;
	}
	access_copy_by(o->access, ACCESS_BY_CALLS);
	return end == COPY_REVOCABLE_ENDED ? -ECANCELED : 0;
}

static uint64_t total_bytes(const struct space_vec *v, size_t n)
{
	uint64_t bytes = 0;

	while (n)
		bytes += v[--n].bytes;
	return bytes;
}

/* Returns how many of the n moves at m are complete once the first `copied`
 * bytes of these moves are copied. */
static size_t count_complete(const struct space_move *m, size_t n,
			     uint64_t copied)
{
	size_t i = 0;

	for (; i < n; i++) {
		uint64_t bytes = total_bytes(m[i].to, m[i].to_count);

		if (bytes > copied)
			break;
		copied -= bytes;
	}
	return i;
}

/* Makes as many of the n moves at m as a call takes, and counts them in
 * *done. */
static int one_batch(struct space_other *o, const struct space_move *m,
		     size_t n, size_t *done, bool is_put)
{
	size_t moves = 0, complete;
	struct batch b;
	uint64_t bytes;
	int err;

	begin_batch(&b);
	do
		put_in(&b, &m[moves], is_put);
	while (++moves < n && has_room(&b, &m[moves]));
	bytes = b.bytes;
	err = run_batch(o, &b, is_put);
	/* A complete move is not made again: a program that has polled the last
	 * byte of a message may have changed the memory since. */
	complete = err ? count_complete(m, moves, bytes - b.bytes) : moves;
	*done += complete;
	/* One bad address may have made the whole call fail. */
	if (err == -EFAULT)
		err = one_by_one(o, &b, m + complete, moves - complete, done,
				 is_put);
	return err;
}

static int move_all(struct space_other *o, const struct space_move *m, size_t n,
		    size_t *done, bool is_put)
{
	int err;

	*done = 0;
	err = move_all_mapped(o, m, n, done, is_put);
	while (!err && *done < n)
		err = one_batch(o, m + *done, n - *done, done, is_put);
	return err;
}

static int other_put(struct space *target, struct space *local,
		     const struct space_move *m, size_t n, size_t *done)
{
	return move_all(other_of(target), m, n, done, true);
}

static int other_get(struct space *target, struct space *local,
		     const struct space_move *m, size_t n, size_t *done)
{
	return move_all(other_of(target), m, n, done, false);
}

static int other_write(struct space *s, const struct space_vec *to, size_t n,
		       const void *src)
{
	struct space_vec from = {(uintptr_t)src, total_bytes(to, n)};
	struct space_move m = {to, &from, (uint32_t)n, 1};
	size_t done;

	return move_all(other_of(s), &m, 1, &done, true);
}

static int other_read(struct space *s, const struct space_vec *from, size_t n,
		      void *dst)
{
	struct space_vec to = {(uintptr_t)dst, total_bytes(from, n)};
	struct space_move m = {&to, from, 1, (uint32_t)n};
	size_t done;

	return move_all(other_of(s), &m, 1, &done, false);
}

/* In mapped memory, an atomic instruction of the processor is atomic for both
 * processes.  In other memory only the owner can execute the atomic: -EPERM.
 * The result is -EPERM also if the word is not aligned, if can_copy_mapped is
 * false, if the instruction faults, or if the access was revoked. */
static int other_atomic(struct space *s, enum space_atomic op, uint64_t va,
			uint64_t swap_add, uint64_t compare, uint64_t *old)
{
	struct space_other *o = other_of(s);
	struct space_vec v = {va, 8};
	enum copy_revocable_end end;
	struct copy_revocable l;
	uint8_t *at;

	if (va % 8 || !can_copy_mapped(o, &l))
		return -EPERM;
	at = peer_maps_at(o->peer_maps, &v, true);
	if (!at)
		return -EPERM;
	access_copy_by(o->access, ACCESS_BY_RSEQ);
	end = copy_revocable_atomic(&l, op, at, swap_add, compare, old);
	access_copy_by(o->access, ACCESS_BY_CALLS);
	return end == COPY_REVOCABLE_DONE ? 0 : -EPERM;
}

static void other_refresh(struct space *s)
{
	struct peer_maps *a = other_of(s)->peer_maps;

	if (a)
		peer_maps_look(a);
}

static bool other_is_call(struct space *s, const struct space_vec *to, size_t n)
{
	struct space_other *o = other_of(s);
	struct space_vec ours[SPACE_VEC_MAX];
	struct copy_revocable l;

	return !can_copy_mapped(o, &l) ||
	       !translate_target(o, to, (uint32_t)n, true, ours);
}

static const struct space_ops other_ops = {
	.write = other_write,
	.read = other_read,
	.atomic = other_atomic,
	.put = other_put,
	.get = other_get,
	.refresh = other_refresh,
	.is_call = other_is_call,
};

void space_other_init(struct space_other *s, pid_t pid)
{
	s->space.ops = &other_ops;
	s->pid = pid;
	s->access = NULL;
	s->peer_maps = NULL;
}
