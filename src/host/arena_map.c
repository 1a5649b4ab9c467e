/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/arena_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "host/host.h"
#include "util/bits.h"
#include "util/check.h"
#include "util/watched.h"
#include "util/mark.h"
#include "util/fsize.h"

#define GIB ((size_t)1 << 30)

static int try_size(struct arena_map *m, size_t size)
{
	struct fsize limit;
	void *base;
	int err, fd = memfd_create("adverb-arena",
				   MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	fsize_hold(&limit);
	err = ftruncate(fd, (off_t)size) ? -errno : 0;
	fsize_give(&limit);
	if (err) {
		close(fd);
		return err;
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto close;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		goto close;
	/* A core dump need not hold the rings. */
	madvise(base, size, MADV_DONTDUMP);
	arena_init(&m->arena, base, size);
	m->fd = mark_fd(fd);
	return 0;
close:
	err = -errno;
	close(fd);
	return err;
}

size_t arena_map_limit(void)
{
	return watched_by_valgrind() ? GIB / 4 : SIZE_MAX;
}

int arena_map_new(struct arena_map *m)
{
	static const size_t sizes[] = {16 * GIB, 4 * GIB,  GIB,
				       GIB / 4,	 GIB / 16, GIB / 64};
	int err = -ENOMEM;

	for (size_t i = 0; err && i < ARRAY_COUNT(sizes); i++)
		if (sizes[i] <= arena_map_limit())
			err = try_size(m, sizes[i]);
	if (err == -EFBIG)
		host_say(0xf51e, "the limit on the size of files, which counts "
				 "shared memory, too, is below the 16 MiB that "
				 "an adapter takes: raise ulimit -f");
	return err;
}

void arena_map_free(struct arena_map *m)
{
	munmap(m->arena.base, m->arena.size);
	mark_close(m->fd);
}

void arena_map_random(void *buf, size_t n)
{
	uint8_t *p = buf;

	while (n) {
		ssize_t got = getrandom(p, n, 0);

		if (got < 0) {
			CHECK(errno == EINTR);
			continue;
		}
		p += got;
		n -= (size_t)got;
	}
}
