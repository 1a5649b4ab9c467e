/* SPDX-License-Identifier: BSD-2-Clause */
/* Pages of classes; see shared_page.h. */
#include "broker/shared_page.h"

#include "broker/fd_check.h"
#include "util/fsize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int shared_page_new(void)
{
	int fd = memfd_create("adverb-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct fsize limit;
	int err;

	if (fd < 0)
		return -errno;
	fsize_hold(&limit);
	err = ftruncate(fd, SHARED_PAGE_BYTES) ? errno : 0;
	fsize_give(&limit);
	if (err) {
		close(fd);
		return -err;
	}
	/* With these seals and this mode no reader gets SIGBUS, and none can
	 * open the page for writing. */
	if (!fcntl(fd, F_ADD_SEALS,
		   F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) &&
	    !fchmod(fd, S_IRUSR))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int shared_page_reader(int fd)
{
	char path[32];
	int reader;

	snprintf(path, sizeof(path), "/proc/thread-self/fd/%d", fd);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	return reader < 0 ? -errno : reader;
}

void shared_page_clear(int fd, uint64_t generation)
{
	static const uint8_t zero[SHARED_PAGE_OWNER_BYTES];

	if (pwrite(fd, zero, sizeof(zero), 0) == (ssize_t)sizeof(zero) &&
	    pwrite(fd, &generation, sizeof(generation),
		   SHARED_PAGE_OWNER_BYTES) > 0)
		return;
	/* There is no memory for the page, so nothing was ever written to it.
	 */
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
