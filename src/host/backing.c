/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/backing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host/host.h"
#include "host/neighbour.h"

/* One line of /proc/self/maps. */
struct mapping {
	uint64_t start, end, offset, ino;
	unsigned major, minor;
	bool is_shared, is_read, is_written;
	char path[PATH_MAX];
};

/* The mapping that has va; false: none, or it cannot be told. */
typedef bool find_mapping(int maps, uint64_t va, struct mapping *m);

/* ---- one mapping, by a question: PROCMAP_QUERY, Linux 6.11 ---- */

struct query {
	uint64_t size, flags, va;
	uint64_t start, end, vma_flags, page_size, offset, ino;
	uint32_t major, minor, name_bytes, build_id_bytes;
	uint64_t name, build_id;
};

#define QUERY _IOWR('f', 17, struct query)

enum { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_SHARED = 8 };

static bool ask(int maps, uint64_t va, struct mapping *m)
{
	struct query q = {.size = sizeof q,
			  .va = va,
			  .name_bytes = sizeof m->path,
			  .name = (uintptr_t)m->path};

	/* all of it: valgrind does not know what this ioctl writes */
	memset(m->path, 0, sizeof m->path);
	if (ioctl(maps, QUERY, &q))
		return false;
	m->start = q.start;
	m->end = q.end;
	m->offset = q.offset;
	m->ino = q.ino;
	m->major = q.major;
	m->minor = q.minor;
	m->is_shared = q.vma_flags & VMA_SHARED;
	m->is_read = q.vma_flags & VMA_READABLE;
	m->is_written = q.vma_flags & VMA_WRITABLE;
	return true;
}

/* ---- and by the text ---- */

static bool parse(const char *line, struct mapping *m)
{
	char rights[5];
	int at = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64
		   " %n",
		   &m->start, &m->end, rights, &m->offset, &m->major, &m->minor,
		   &m->ino, &at) < 7)
		return false;
	m->is_shared = rights[3] == 's';
	m->is_read = rights[0] == 'r';
	m->is_written = rights[1] == 'w';
	snprintf(m->path, sizeof m->path, "%s", line + at);
	m->path[strcspn(m->path, "\n")] = 0;
	return true;
}

#define PAGE	     4096u
#define PAGE_PRESENT (1ull << 63)
#define PAGE_OF_FILE (1ull << 61)

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

/*
 * Is the page there, and no file's?  Most memory is private, and a program with
 * a thousand mappings would wait for their text each time.
 */
static bool is_private(uint64_t va)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t page = 0;
	bool is_read;

	if (fd < 0)
		return false;
	madvise((void *)(uintptr_t)(va & ~(uint64_t)(PAGE - 1)), PAGE,
		MADV_POPULATE_READ);
	is_read = pread(fd, &page, sizeof page,
			(off_t)(va / PAGE * sizeof page)) == sizeof page;
	close(fd);
	return is_read && page & PAGE_PRESENT && !(page & PAGE_OF_FILE);
}

static bool look_up(int maps, uint64_t va, struct mapping *m)
{
	int fd = fcntl(maps, F_DUPFD_CLOEXEC, 0);
	FILE *f = fd >= 0 && !lseek(fd, 0, SEEK_SET) ? fdopen(fd, "r") : NULL;
	char line[PATH_MAX + 128];
	bool found = false;

	if (!f && fd >= 0)
		close(fd);
	while (f && !found && fgets(line, sizeof line, f))
		found = parse(line, m) && m->start <= va && va < m->end;
	if (f)
		fclose(f);
	return found;
}

/* ---- what it means ---- */

static bool goes_on(const struct mapping *m, const struct mapping *after)
{
	return after->start == m->end && after->ino == m->ino &&
	       after->major == m->major && after->minor == m->minor &&
	       after->is_shared && after->is_read &&
	       after->is_written == m->is_written &&
	       after->offset == m->offset + (m->end - m->start);
}

/* All of the range, in *m; a mapping may be cut in several for the kernel. */
static bool find_all(find_mapping *find, int maps, uint64_t va, uint64_t bytes,
		     struct mapping *m)
{
	struct mapping after;

	if (!find(maps, va, m) || !m->is_shared || !m->is_read || !m->ino)
		return false;
	while (m->end < va + bytes) {
		if (!find(maps, m->end, &after) || !goes_on(m, &after))
			return false;
		m->end = after.end;
	}
	return true;
}

static bool is_file(int fd, const struct mapping *m)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_ino == m->ino && st.st_dev == makedev(m->major, m->minor);
}

/*
 * The file as a place alone: to close another kind of descriptor would take
 * from the program its locks of the file (fcntl(2)).
 */
static int open_place(const char *path, const struct mapping *m)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0 && !is_file(fd, m)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A descriptor of our own of the file that the program has open, or -1. */
static int open_anew(const struct mapping *m)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	char path[32];
	int fd = -1;

	while (dir && fd < 0 && (e = readdir(dir))) {
		int its = atoi(e->d_name);

		if (e->d_name[0] == '.' || its == dirfd(dir) ||
		    !is_file(its, m))
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", its);
		fd = open_place(path, m);
	}
	if (dir)
		closedir(dir);
	return fd;
}

static bool find(find_mapping *how, int maps, uint64_t va, uint64_t bytes,
		 struct mapping *m, struct share *what)
{
	if (!bytes || !find_all(how, maps, va, bytes, m))
		return false;
	*what = (struct share){.fd = -1,
			       .is_written = m->is_written,
			       .va = m->start,
			       .bytes = m->end - m->start,
			       .offset = m->offset,
			       .dev = makedev(m->major, m->minor),
			       .ino = m->ino};
	return true;
}

/* By its name at once, or the program has it open: that takes longer. */
static bool open_file(const struct mapping *m, struct share *what)
{
	if (m->path[0] == '/')
		what->fd = open_place(m->path, m);
	if (what->fd < 0)
		what->fd = open_anew(m);
	return what->fd >= 0;
}

static bool find_by_text(int maps, uint64_t va, uint64_t bytes,
			 struct mapping *m, struct share *what)
{
	return !is_private(va) && find(look_up, maps, va, bytes, m, what);
}

bool backing_find_by_text(uint64_t va, uint64_t bytes, struct share *what)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	struct mapping m;
	bool found;

	if (maps < 0)
		return false;
	found = find_by_text(maps, va, bytes, &m, what);
	close(maps);
	return found && open_file(&m, what);
}

static bool can_be_asked(int maps)
{
	struct mapping m;

	return ask(maps, 0, &m) || errno != ENOTTY;
}

static bool find_somehow(uint64_t va, uint64_t bytes, struct mapping *m,
			 struct share *what)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found;

	if (maps < 0)
		return false;
	if (can_be_asked(maps))
		found = find(ask, maps, va, bytes, m, what);
	else
		found = find_by_text(maps, va, bytes, m, what);
	close(maps);
	return found;
}

bool backing_find(uint64_t va, uint64_t bytes, struct share *what)
{
	struct mapping m;

	return find_somehow(va, bytes, &m, what) && open_file(&m, what);
}

bool backing_is(int pid, const struct share *what)
{
	find_mapping *how;
	struct mapping m;
	char path[32];
	bool is_all;
	int maps;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	maps = open(path, O_RDONLY | O_CLOEXEC);
	if (maps < 0)
		return false;
	how = can_be_asked(maps) ? ask : look_up;
	is_all = find_all(how, maps, what->va, what->bytes, &m);
	close(maps);
	return is_all && m.is_written >= !!what->is_written &&
	       m.offset + (what->va - m.start) == what->offset &&
	       makedev(m.major, m.minor) == what->dev && m.ino == what->ino;
}

/* ---- for the faces ---- */

static uint32_t share_locked(struct hca *h, uint64_t va, uint64_t bytes)
{
	struct mapping m;
	struct share what;
	bool is_shared = find_somehow(va, bytes, &m, &what);
	uint32_t number = is_shared ? share_again(h, va, bytes, &what) : 0;
	if (number)
		return number;
	is_shared = is_shared && open_file(&m, &what);
	number = share_enter(h, va, bytes, is_shared ? &what : NULL);
	if (is_shared && !number)
		close(what.fd);
	return number;
}

uint32_t host_share(struct host *h, const void *addr, size_t bytes)
{
	uint32_t number;

	if (!neighbour_is_open())
		return 0;
	/* what another thread registers meanwhile would be told of as before */
	host_lock(h);
	number = share_locked(host_hca(h), (uintptr_t)addr, bytes);
	host_unlock(h);
	return number;
}

void host_unshare(struct host *h, uint32_t number)
{
	int fd;

	host_lock(h);
	fd = share_leave(host_hca(h), number);
	host_unlock(h);
	if (fd >= 0)
		close(fd);
}
