/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/arena_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "log/log.h"
#include "util/bits.h"
#include "util/instrument.h"
#include "util/fd_identity.h"
#include "util/memfile.h"

#define GIB ((size_t)1 << 30)

/* Maps with PROT_NONE first.  Otherwise, if the program has called
 * mlockall(MCL_FUTURE), the kernel would fill the part with pages. */
static bool map_part(uint8_t *at, size_t bytes, int prot, int fd)
{
	if (mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
		 fd, 0) == MAP_FAILED)
		return false;
	munlock(at, bytes);
	return !mprotect(at, bytes, prot);
}

void *arena_map_parts(const struct arena_parts *p)
{
	size_t bytes = p->bytes + p->shared_bytes;
	uint8_t *base =
		mmap(NULL, bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (base == MAP_FAILED)
		return NULL;
	munlock(base, bytes); /* for the limit on locked memory */
	if (map_part(base, p->bytes, p->prot, p->fd) &&
	    map_part(base + p->bytes, p->shared_bytes, PROT_READ | PROT_WRITE,
		     p->shared_fd)) {
		/* The rings are not needed in a core dump. */
		madvise(base, bytes, MADV_DONTDUMP);
		return base;
	}
	err = errno;
	munmap(base, bytes);
	errno = err;
	return NULL;
}

/* Seals both parts.  After F_SEAL_FUTURE_WRITE the kernel refuses to map the
 * first part for writing; the mapping that this process has already made stays
 * writable.  Before Linux 5.1 the kernel refuses this seal, and the arena works
 * without it.  Returns 0 or -errno. */
static int seal_parts(const struct arena_parts *p)
{
	int err;

	fcntl(p->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
	err = memfile_seal(p->fd);
	return err ? err : memfile_seal(p->shared_fd);
}

static int try_size(struct arena_map *m, size_t size)
{
	struct arena_parts p = {.bytes = size / 2,
				.shared_bytes = size / 2,
				.prot = PROT_READ | PROT_WRITE};
	struct arena_hdr *hdr;
	void *base = NULL;
	int err;

	p.fd = memfile_new("adverb-arena", p.bytes);
	p.shared_fd =
		p.fd < 0 ? p.fd : memfile_new("adverb-shared", p.shared_bytes);
	err = p.shared_fd < 0 ? p.shared_fd : 0;
	if (!err) {
		base = arena_map_parts(&p);
		err = base ? seal_parts(&p) : -errno;
	}
	if (base && !err) {
		arena_init(&m->arena, base, size);
		m->fd = fd_identity_note(p.fd);
		m->shared_fd = fd_identity_note(p.shared_fd);
		hdr = base;
		hdr->shared_fd = m->shared_fd;
		hdr->process = (uint32_t)getpid();
		return 0;
	}
	if (base)
		munmap(base, size);
	if (p.shared_fd >= 0)
		close(p.shared_fd);
	if (p.fd >= 0)
		close(p.fd);
	return err;
}

size_t arena_map_limit(void)
{
	return instrument_by_valgrind() ? GIB / 4 : SIZE_MAX;
}

int arena_map_new(struct arena_map *m)
{
	static const size_t sizes[] = {16 * GIB, 4 * GIB,  GIB,
				       GIB / 4,	 GIB / 16, ARENA_MAP_LEAST};
	int err = -ENOMEM;

	for (size_t i = 0; err && i < ARRAY_COUNT(sizes); i++)
		if (sizes[i] <= arena_map_limit())
			err = try_size(m, sizes[i]);
	if (err == -EFBIG)
		log_say(LOG_ARENA_SIZE, 0,
			"cannot create an adapter: the limit on the size of a "
			"file, which also holds for shared memory, is below "
			"the 8 MiB that an adapter needs: raise ulimit -f");
	if (err == -EAGAIN)
		log_say(LOG_ARENA_SIZE, 0,
			"cannot create an adapter: this program has called "
			"mlockall(MCL_FUTURE), and the limit of locked memory "
			"leaves less than the 16 MiB that an adapter maps: "
			"raise ulimit -l, or open the device before the call");
	return err;
}

void arena_map_free(struct arena_map *m)
{
	munmap(m->arena.base, m->arena.size);
	fd_identity_close(m->shared_fd);
	fd_identity_close(m->fd);
}
