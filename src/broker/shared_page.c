/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of classes; see shared_page.h. */
#include "broker/shared_page.h"

#include "broker/fd_check.h"
#include "engine/credit.h"
#include "util/memfile.h"
#include "util/write_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int shared_page_new(void)
{
	int err, fd = memfile_new("adverb-page", SHARED_PAGE_BYTES);

	if (fd < 0)
		return fd;
	err = memfile_seal(fd);
	/* The mode keeps a reader from opening the page for writing, unless the
	 * reader overrides or changes the mode. */
	if (!err && fchmod(fd, S_IRUSR))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int shared_page_reader(int fd)
{
	char path[32];
	int reader;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	return reader < 0 ? -errno : reader;
}

/* Writes to the page at fd.  Returns 0 or -errno. */
static int write_page(int fd, const void *from, size_t bytes, off_t offset)
{
	struct write_signals held;
	ssize_t n;
	int err;

	write_signals_hold(&held);
	n = pwrite(fd, from, bytes, offset);
	err = n < 0 ? -errno : n < (ssize_t)bytes ? -EFBIG : 0;
	write_signals_give(&held);
	return err;
}

/* The part of the page that shared_page_end does not change. */
#define LEFT_AT	   offsetof(struct credit_page, posts)
#define LEFT_BYTES sizeof(((struct credit_page *)0)->posts)
#define LEFT_END   (LEFT_AT + LEFT_BYTES)

/* Does what shared_page_clear or, if `ends`, shared_page_end does, but without
 * pwrite, which RLIMIT_FSIZE limits.  Returns 0 or -errno. */
static int clear_mapped(int fd, uint64_t generation, bool ends)
{
	uint8_t *page;

	/* allocates the memory now: if there were none, the stores below would
	 * raise SIGBUS */
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, SHARED_PAGE_BYTES))
		return -errno;
	page = mmap(NULL, SHARED_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		    fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	memset(page, 0, LEFT_AT);
	if (!ends)
		memset(page + LEFT_AT, 0, LEFT_BYTES);
	memset(page + LEFT_END, 0, SHARED_PAGE_OWNER_BYTES - LEFT_END);
	memcpy(page + SHARED_PAGE_OWNER_BYTES, &generation, sizeof(generation));
	munmap(page, SHARED_PAGE_BYTES);
	return 0;
}

/* Does what clear_mapped does, by pwrite. */
static int clear_written(int fd, uint64_t generation, bool ends)
{
	static const uint8_t zero[SHARED_PAGE_OWNER_BYTES];
	int err = write_page(fd, zero, LEFT_AT, 0);

	if (!err && !ends)
		err = write_page(fd, zero, LEFT_BYTES, LEFT_AT);
	if (!err)
		err = write_page(fd, zero, SHARED_PAGE_OWNER_BYTES - LEFT_END,
				 LEFT_END);
	if (!err)
		err = write_page(fd, &generation, sizeof(generation),
				 SHARED_PAGE_OWNER_BYTES);
	return err;
}

static bool clear_page(int fd, uint64_t generation, bool ends)
{
	return !clear_written(fd, generation, ends) ||
	       !clear_mapped(fd, generation, ends);
}

bool shared_page_clear(int fd, uint64_t generation)
{
	return clear_page(fd, generation, false);
}

bool shared_page_end(int fd, uint64_t generation)
{
	return clear_page(fd, generation, true);
}

bool shared_page_copy(int fd, size_t offset, size_t bytes, void *to)
{
	return fd >= 0 && pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

uint64_t shared_page_generation(int fd)
{
	uint64_t generation = 0;

	if (!shared_page_copy(fd, SHARED_PAGE_OWNER_BYTES, sizeof(generation),
			      &generation))
		return 0;
	return generation;
}

bool shared_page_is(int fd)
{
	return fd_check_is_sealed(fd, SHARED_PAGE_BYTES);
}

void *shared_page_map(int fd, int protection)
{
	void *page;

	if (!shared_page_is(fd))
		return NULL;
	page = mmap(NULL, SHARED_PAGE_BYTES, protection, MAP_SHARED, fd, 0);
	return page == MAP_FAILED ? NULL : page;
}

void shared_page_unmap(const void *page)
{
	if (page)
		munmap((void *)(uintptr_t)page, SHARED_PAGE_BYTES);
}
