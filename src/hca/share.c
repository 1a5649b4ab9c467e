/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/share.h"

#include "util/bits.h"
#include "util/check.h"
#include "util/step.h"

/* Returns the table; NULL: h is a view of another process's arena, which names
 * a wrong offset. */
static struct share *share_rows(const struct hca *h)
{
	aoff at = h->shared->shares;

	if (at % 8 ||
	    !arena_has(&h->arena, at, SHARE_MAX * sizeof(struct share)))
		return NULL;
	return arena_at(&h->arena, at);
}

static struct share *own_rows(const struct hca *h)
{
	struct share *row = share_rows(h);

	CHECK(row);
	return row;
}

/* Returns the table's next version; it is never 0. */
static uint32_t next_version(const struct hca *h)
{
	uint32_t version = shared_own(&h->shared->share_version) + 1;

	return version ? version : 1;
}

/*
 * Stores the serial of a changed row, and then the table's version.  Peers that
 * see another version than at their last look read the table again.
 *
 * The store of the serial (release) comes after the stores of the row's other
 * members, and a peer loads the serial (acquire) before them.  In another order
 * a peer could see the serial of the new use of the row, and copy members of
 * its former use.
 *
 * The store of the version (release) comes after that of the serial, and a peer
 * loads the version (acquire) before the serials.  In another order a peer
 * could see the new version and the old serial, and would not look again until
 * the next change of the table.
 */
static void publish_row(struct hca *h, struct share *row, uint32_t serial,
			uint32_t version)
{
	shared_store(&row->serial, serial);
	STEP("a row's serial is stored");
	shared_store(&h->shared->share_version, version);
}

/* ---- struct share_look ---- */

void share_look_begin(struct hca *h, struct share_look *l, uint64_t va,
		      uint64_t bytes)
{
	l->va = va;
	l->bytes = bytes;
	l->is_outdated = false;
	list_push_tail(&h->share_looks, &l->node);
}

void share_look_end(struct share_look *l)
{
	list_remove(&l->node);
}

/* Marks each struct share_look whose addresses overlap a region that is being
 * registered: the memory there may have changed since it was examined. */
static void outdate_looks(struct hca *h, uint64_t va, uint64_t bytes)
{
	list_for_each (n, &h->share_looks) {
		struct share_look *l = CONTAINER_OF(n, struct share_look, node);

		if (bytes && va < l->va + l->bytes && l->va < va + bytes)
			l->is_outdated = true;
	}
}

/* ---- rows ---- */

static bool meets_range(const struct share *s, uint64_t va, uint64_t bytes)
{
	return shared_own(&s->serial) && bytes && va < s->va + s->bytes &&
	       s->va < va + bytes;
}

/* Do two rows map a common address to the same byte of the same file, with the
 * same is_written? */
static bool agrees_with(const struct share *a, const struct share *b)
{
	return a->dev == b->dev && a->ino == b->ino &&
	       a->is_written == b->is_written &&
	       a->va - a->offset == b->va - b->offset;
}

static bool holds_range(const struct share *s, uint64_t va, uint64_t bytes)
{
	return s->va <= va && va + bytes <= s->va + s->bytes;
}

/* Makes peers stop using the row.  The regions that use it keep it until
 * share_leave. */
static void withdraw_row(struct hca *h, struct share *s)
{
	publish_row(h, s, 0, next_version(h));
}

static uint32_t add_row(struct hca *h, const struct share *what)
{
	struct share *row = own_rows(h);
	uint32_t version = next_version(h);

	for (uint32_t i = 0; i < SHARE_MAX; i++, row++) {
		if (row->users)
			continue;
		row->fd = what->fd;
		row->users = 1;
		row->is_written = what->is_written;
		row->va = what->va;
		row->bytes = what->bytes;
		row->offset = what->offset;
		row->dev = what->dev;
		row->ino = what->ino;
		publish_row(h, row, version, version);
		return i + 1;
	}
	return 0;
}

enum share_room share_room(const struct hca *h, uint64_t va, uint64_t bytes)
{
	const struct share *row = own_rows(h);
	enum share_room room = SHARE_FULL;

	for (uint32_t i = 0; i < SHARE_MAX; i++, row++) {
		if (meets_range(row, va, bytes))
			return SHARE_MET;
		if (!row->users)
			room = SHARE_FREE;
	}
	return room;
}

uint32_t share_again(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what)
{
	struct share *row = own_rows(h);

	for (uint32_t i = 0; i < SHARE_MAX; i++, row++) {
		if (!meets_range(row, what->va, what->bytes) ||
		    !agrees_with(row, what) || !holds_range(row, va, bytes))
			continue;
		row->users++;
		outdate_looks(h, va, bytes);
		return i + 1;
	}
	return 0;
}

uint32_t share_enter(struct hca *h, uint64_t va, uint64_t bytes,
		     const struct share *what)
{
	struct share *row = own_rows(h);

	outdate_looks(h, va, bytes);
	for (uint32_t i = 0; i < SHARE_MAX; i++) {
		bool is_met =
			what && meets_range(&row[i], what->va, what->bytes);

		if (is_met && !agrees_with(&row[i], what))
			withdraw_row(h, &row[i]);
		else if (!what && meets_range(&row[i], va, bytes))
			withdraw_row(h, &row[i]);
	}
	return what ? add_row(h, what) : 0;
}

int share_leave(struct hca *h, uint32_t number)
{
	struct share *row;

	if (!number)
		return -1;
	row = own_rows(h) + number - 1;
	if (--row->users)
		return -1;
	if (shared_own(&row->serial))
		withdraw_row(h, row);
	return row->fd;
}

int share_next_fd(const struct hca *h, uint32_t *at)
{
	const struct share *row = own_rows(h);

	while (*at < SHARE_MAX) {
		const struct share *s = &row[(*at)++];

		if (s->users)
			return s->fd;
	}
	return -1;
}

struct share share_read(const struct hca *h, uint32_t row)
{
	const struct share *all = share_rows(h);
	struct share s = {0};
	uint32_t serial;

	if (!all)
		return s;
	serial = shared_load(&all[row].serial);
	if (!serial)
		return s;
	s = all[row];
	/* Orders the loads of the row before the second load of its serial.
	 * Otherwise the copy could have the first serial although some members
	 * are those of a later use of the row.  The owner's stores have the
	 * order that this fence needs: between the store of serial 0 and the
	 * stores of those members (add_row), the owner releases the ctx lock
	 * and takes it again. */
	shared_fence();
	shared_store(&s.serial, share_is(h, row, serial) ? serial : 0);
	return s;
}

bool share_is(const struct hca *h, uint32_t row, uint32_t serial)
{
	const struct share *all = share_rows(h);

	return all && shared_load(&all[row].serial) == serial;
}
