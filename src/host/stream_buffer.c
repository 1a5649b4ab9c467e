/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/stream_buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "util/check.h"

#define BLOCK_BYTES ((size_t)STREAM_BUFFER_BLOCK * STREAM_BUFFER_BYTES)
#define ALL	    ((1u << STREAM_BUFFER_BLOCK) - 1)

_Static_assert(STREAM_BUFFER_BLOCK < 32, "a word has a bit for each buffer");

static bool add_block(struct stream_buffers *b)
{
	struct stream_buffer_block *more =
		realloc(b->block, (b->blocks + 1) * sizeof(*more));
	void *base;

	if (!more)
		return false;
	b->block = more;
	base = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return false;
	/* With huge pages, the first byte that is written into the block would
	 * take 2 MiB of memory.  Kernels without huge pages refuse the advice.
	 */
	if (madvise(base, BLOCK_BYTES, MADV_NOHUGEPAGE))
		errno = 0;
	b->block[b->blocks++] = (struct stream_buffer_block){.base = base};
	return true;
}

static void drop_blocks(struct stream_buffers *b, uint32_t kept)
{
	while (b->blocks > kept)
		munmap(b->block[--b->blocks].base, BLOCK_BYTES);
}

bool stream_buffer_reserve(struct stream_buffers *b)
{
	if (b->reserved == b->blocks * STREAM_BUFFER_BLOCK && !add_block(b))
		return false;
	b->reserved++;
	return true;
}

void stream_buffer_release(struct stream_buffers *b)
{
	if (!--b->reserved)
		drop_blocks(b, 1);
}

/* Gives the pages of an unused block back to the kernel.  The first block keeps
 * its pages for the next full socket. */
static void drop_pages(struct stream_buffer_block *block)
{
	int kept = errno;

	madvise(block->base, BLOCK_BYTES, MADV_DONTNEED);
	errno = kept;
}

/* Takes the first free buffer, since an earlier full socket has probably
 * written there: then the kernel need not find new pages. */
uint8_t *stream_buffer_take(struct stream_buffers *b)
{
	struct stream_buffer_block *block = b->block;
	uint32_t i;

	while (block < b->block + b->blocks && block->taken == ALL)
		block++;
	CHECK(block < b->block + b->blocks);
	i = (uint32_t)__builtin_ctz(~block->taken);
	block->taken |= 1u << i;
	return block->base + (size_t)i * STREAM_BUFFER_BYTES;
}

void stream_buffer_give(struct stream_buffers *b, const uint8_t *buffer)
{
	for (uint32_t i = 0; i < b->blocks; i++) {
		size_t at = (size_t)(buffer - b->block[i].base);

		if (buffer < b->block[i].base || at >= BLOCK_BYTES)
			continue;
		b->block[i].taken &= ~(1u << at / STREAM_BUFFER_BYTES);
		if (i && !b->block[i].taken)
			drop_pages(&b->block[i]);
	}
}

void stream_buffer_fini(struct stream_buffers *b)
{
	drop_blocks(b, 0);
	free(b->block);
	*b = (struct stream_buffers){0};
}
