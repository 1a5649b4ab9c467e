/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/arena.h"

#include <string.h>

#include "util/bits.h"
#include "util/check.h"

#define MIN_SHIFT 6 /* a cache line */
#define PAGE	  4096u

static struct arena_hdr *arena_header(const struct arena *a)
{
	return (struct arena_hdr *)(void *)a->base;
}

void arena_init(struct arena *a, void *base, size_t size)
{
	struct arena_hdr *h = base;

	CHECK(size >= 2 * PAGE);
	a->base = base;
	a->size = size;
	h->magic = ARENA_MAGIC;
	h->size = size;
	h->layout = ARENA_LAYOUT;
	h->brk = bits_align_up(sizeof(*h), PAGE);
	a->shared = size / 2 / PAGE * PAGE;
	h->shared = h->shared_brk = a->shared;
}

static unsigned class_of(uint64_t bytes)
{
	unsigned c = 0;

	while ((1ull << (c + MIN_SHIFT)) < bytes)
		c++;
	return c;
}

/* Allocates pages that were never allocated before; 0: there are no more. */
static aoff take_pages(aoff *brk, aoff end, uint64_t bytes)
{
	aoff off = bits_align_up(*brk, PAGE);

	if (off > end || bytes > end - off)
		return 0;
	*brk = off + bytes;
	return off;
}

/* Allocates memory that was never allocated before; 0: there is no more.  Small
 * blocks share pages, also if larger blocks are allocated between them: each
 * page costs memory and a page fault. */
static aoff take_fresh(struct arena_page *page, aoff *brk, aoff end,
		       uint64_t bytes)
{
	aoff off = bits_align_up(page->next, bytes);

	if (bytes >= PAGE)
		return take_pages(brk, end, bytes);
	if (off + bytes > page->end) {
		off = take_pages(brk, end, PAGE);
		if (!off)
			return 0;
		page->end = off + PAGE;
	}
	page->next = off + bytes;
	return off;
}

static void give_block(struct arena *a, struct arena_hdr *h, unsigned class,
		       aoff off)
{
	memcpy(a->base + off, &h->free[class], sizeof(aoff));
	h->free[class] = off;
}

static aoff take_block(struct arena *a, struct arena_hdr *h, unsigned class)
{
	uint64_t bytes = 1ull << (class + MIN_SHIFT);
	aoff off = h->free[class];

	if (off) {
		memcpy(&h->free[class], a->base + off, sizeof(aoff));
		memset(a->base + off, 0, bytes);
		return off;
	}
	return take_fresh(&h->page, &h->brk, a->shared, bytes);
}

/*
 * Describes a free block of part two, which peers write.  This struct lies in
 * part one, because a peer could change a free list in part two and so choose
 * the address of the next block.
 */
struct arena_spare {
	/* next: the struct arena_spare of the next free block.  at: the free
	 * block. */
	aoff next, at;
};

/* Takes a free block of part two, with the contents that it has; 0: there is
 * none of this class. */
static aoff take_spare(struct arena *a, struct arena_hdr *h, unsigned class)
{
	aoff spare = h->shared_free[class];
	struct arena_spare *s = arena_at(a, spare);
	aoff off;

	if (!s)
		return 0;
	off = s->at;
	h->shared_free[class] = s->next;
	give_block(a, h, 0, spare);
	return off;
}

/* Allocates a zeroed block of part two. */
static aoff take_shared(struct arena *a, struct arena_hdr *h, unsigned class)
{
	uint64_t bytes = 1ull << (class + MIN_SHIFT);
	aoff off = take_spare(a, h, class);

	if (!off)
		return take_fresh(&h->shared_page, &h->shared_brk,
				  a->size - ARENA_UNUSED, bytes);
	memset(a->base + off, 0, bytes);
	return off;
}

/* Allocates a block of part two, without zeroing it: a free block, or memory in
 * the first half of part two that was never allocated before. */
static aoff take_buffer(struct arena *a, struct arena_hdr *h, unsigned class)
{
	aoff half = a->shared + (a->size - a->shared) / 2;
	aoff off = take_spare(a, h, class);

	return off ? off
		   : take_fresh(&h->shared_page, &h->shared_brk, half,
				1ull << (class + MIN_SHIFT));
}

/* Frees a block of part two.  If there is no memory for its struct arena_spare,
 * the block is never used again. */
static void give_shared(struct arena *a, struct arena_hdr *h, unsigned class,
			aoff off)
{
	aoff spare = take_block(a, h, 0);
	struct arena_spare *s = arena_at(a, spare);

	_Static_assert(sizeof(*s) <= 1 << MIN_SHIFT,
		       "a struct arena_spare fits a block of class 0");
	if (!s)
		return;
	*s = (struct arena_spare){h->shared_free[class], off};
	h->shared_free[class] = spare;
}

static aoff alloc_by(struct arena *a, uint64_t bytes,
		     aoff (*how)(struct arena *, struct arena_hdr *, unsigned))
{
	struct arena_hdr *h = arena_header(a);
	unsigned class = class_of(bytes);
	aoff off;

	if (class >= ARENA_CLASSES || bytes > a->size)
		return 0;
	alock_take(&h->lock);
	off = how(a, h, class);
	if (off)
		h->used_bytes += 1ull << (class + MIN_SHIFT);
	alock_give(&h->lock);
	return off;
}

aoff arena_alloc(struct arena *a, uint64_t bytes)
{
	return alloc_by(a, bytes, take_block);
}

aoff arena_alloc_shared(struct arena *a, uint64_t bytes)
{
	return alloc_by(a, bytes, take_shared);
}

aoff arena_alloc_buffer(struct arena *a, uint64_t bytes)
{
	return alloc_by(a, bytes, take_buffer);
}

void arena_free(struct arena *a, aoff off, uint64_t bytes)
{
	struct arena_hdr *h = arena_header(a);
	unsigned class = class_of(bytes);

	if (!off)
		return;
	alock_take(&h->lock);
	if (off < a->shared)
		give_block(a, h, class, off);
	else
		give_shared(a, h, class, off);
	h->used_bytes -= 1ull << (class + MIN_SHIFT);
	alock_give(&h->lock);
}

uint64_t arena_used(const struct arena *a)
{
	return arena_header(a)->used_bytes;
}
