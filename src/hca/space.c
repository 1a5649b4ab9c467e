/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/space.h"

#include <errno.h>

#include "util/bits.h"
#include "util/check.h"

#define BUFFER_BYTES 4096

/* A position in a list of ranges. */
struct at {
	const struct space_vec *v;
	uint32_t left; /* how many ranges are left, v[0] included */
	uint64_t used; /* the bytes of v[0] before the position */
};

/* Moves the position forward by up to `bytes` bytes, and stores the ranges of
 * these bytes in `out`.  Returns the number of ranges; *got: the number of
 * bytes. */
static size_t next_piece(struct at *a, uint64_t bytes, uint64_t *got,
			 struct space_vec out[SPACE_VEC_MAX])
{
	size_t n = 0;

	*got = 0;
	while (a->left && *got < bytes) {
		uint64_t rest = a->v->bytes - a->used;
		uint64_t take = bits_min_u64(rest, bytes - *got);

		if (take)
			out[n++] = (struct space_vec){a->v->va + a->used, take};
		*got += take;
		a->used += take;
		if (take == rest) {
			a->v++;
			a->left--;
			a->used = 0;
		}
	}
	return n;
}

/* Returns the result of a move for an error of one side: -EPERM stays, any
 * other error becomes not_there, the code for missing memory on that side. */
static int move_error(int err, int not_there)
{
	return err == -EPERM ? err : not_there;
}

/* Executes one move through a buffer, piece after piece.  The bytes of the last
 * piece are written in the order of space_ops.write.  @no_from, @no_to: the
 * errors if memory of `from` or of `to` is missing. */
static int move_batch(const struct space_move *m, struct space *from,
		      struct space *to, int no_from, int no_to)
{
	struct at src = {m->from, m->from_count, 0};
	struct at dst = {m->to, m->to_count, 0};
	struct space_vec v[SPACE_VEC_MAX];
	uint8_t buffer[BUFFER_BYTES];
	uint64_t bytes, same;
	size_t n;
	int err;

	CHECK(m->from_count <= SPACE_VEC_MAX && m->to_count <= SPACE_VEC_MAX);
	while ((n = next_piece(&src, sizeof(buffer), &bytes, v)) > 0) {
		err = from->ops->read(from, v, n, buffer);
		if (err)
			return move_error(err, no_from);
		n = next_piece(&dst, bytes, &same, v);
		CHECK(same == bytes);
		err = to->ops->write(to, v, n, buffer);
		if (err)
			return move_error(err, no_to);
	}
	return 0;
}

int space_put(struct space *peer, struct space *own, const struct space_move *m,
	      size_t n, size_t *done)
{
	int err = 0;

	if (peer->ops->put)
		return peer->ops->put(peer, own, m, n, done);
	for (*done = 0; !err && *done < n; *done += !err)
		err = move_batch(&m[*done], own, peer, -ENXIO, -EFAULT);
	return err;
}

int space_get(struct space *peer, struct space *own, const struct space_move *m,
	      size_t n, size_t *done)
{
	int err = 0;

	if (peer->ops->get)
		return peer->ops->get(peer, own, m, n, done);
	for (*done = 0; !err && *done < n; *done += !err)
		err = move_batch(&m[*done], peer, own, -EFAULT, -ENXIO);
	return err;
}
