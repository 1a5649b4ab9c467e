#include "hca/arena.h"

#include <string.h>

#include "util/bits.h"
#include "util/check.h"

#define MIN_SHIFT 6 /* a cache line */
#define PAGE	  4096u

static struct arena_hdr *header(const struct arena *a)
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
	h->brk = bits_align_up(sizeof *h, PAGE);
}

static unsigned class_of(uint64_t bytes)
{
	unsigned c = 0;

	while ((1ull << (c + MIN_SHIFT)) < bytes)
		c++;
	return c;
}

static aoff take(struct arena *a, struct arena_hdr *h, unsigned class)
{
	uint64_t bytes = 1ull << (class + MIN_SHIFT);
	aoff off = h->free[class];

	if (off) {
		memcpy(&h->free[class], a->base + off, sizeof(aoff));
		memset(a->base + off, 0, bytes);
		return off;
	}
	off = bits_align_up(h->brk, bytes < PAGE ? bytes : PAGE);
	if (off > a->size || bytes > a->size - off)
		return 0;
	h->brk = off + bytes;
	return off;
}

aoff arena_alloc(struct arena *a, uint64_t bytes)
{
	struct arena_hdr *h = header(a);
	unsigned class = class_of(bytes);
	aoff off;

	if (class >= ARENA_CLASSES || bytes > a->size)
		return 0;
	alock_take(&h->lock);
	off = take(a, h, class);
	if (off)
		h->used_bytes += 1ull << (class + MIN_SHIFT);
	alock_give(&h->lock);
	return off;
}

void arena_free(struct arena *a, aoff off, uint64_t bytes)
{
	struct arena_hdr *h = header(a);
	unsigned class = class_of(bytes);

	if (!off)
		return;
	alock_take(&h->lock);
	memcpy(a->base + off, &h->free[class], sizeof(aoff));
	h->free[class] = off;
	h->used_bytes -= 1ull << (class + MIN_SHIFT);
	alock_give(&h->lock);
}

uint64_t arena_used(const struct arena *a)
{
	return header(a)->used_bytes;
}
