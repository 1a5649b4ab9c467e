/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/mr_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/hint.h"

/* ---- how many lines of /proc may be read for a region ---- */

/*
 * /proc/self/maps has a line for each mapping, and /proc/self/fd an entry for
 * each descriptor.  A program may have as many mappings or descriptors as
 * regions, and the time for all regions would grow with the square of their
 * number.  So the process has an allowance of lines.  Each registered region
 * adds ALLOWANCE_EACH lines while the allowance is below ALLOWANCE_FIRST, and
 * each line read takes one away.  While no line is left, this process looks for
 * the file of a region only if the region overlaps memory whose file is already
 * known (a row of the table of hca/share.h).  Peers access all other new
 * regions by system calls.
 */
#define ALLOWANCE_FIRST (SHARE_MAX * 1024)
#define ALLOWANCE_EACH	32

static struct hint allowance = {ALLOWANCE_FIRST};

bool mr_file_may_look(void)
{
	return hint_now(&allowance) > 0;
}

static void spend_lines(int64_t lines)
{
	hint_add(&allowance, -lines);
}

void mr_file_earn(void)
{
	if (hint_now(&allowance) < ALLOWANCE_FIRST)
		spend_lines(-ALLOWANCE_EACH);
}

/* Finds the mapping that contains va.  maps: the process's /proc/PID/maps, of
 * which lines for lower addresses may have been read.  False: there is no such
 * mapping, or an error. */
typedef bool find_mapping(FILE *maps, uint64_t va, struct mr_file_mapping *m);

/* ---- one mapping by ioctl PROCMAP_QUERY, Linux 6.11 ---- */

struct map_query {
	uint64_t size, flags, va;
	uint64_t start, end, vma_flags, page_size, offset, ino;
	uint32_t major, minor, name_bytes, build_id_bytes;
	uint64_t name, build_id;
};

#define QUERY _IOWR('f', 17, struct map_query)

enum { VMA_READABLE = 1, VMA_WRITABLE = 2, VMA_SHARED = 8 };

static bool ask_kernel(FILE *maps, uint64_t va, struct mr_file_mapping *m)
{
	struct map_query q = {.size = sizeof(q),
			      .va = va,
			      .name_bytes = sizeof(m->path),
			      .name = (uintptr_t)m->path};

	/* valgrind does not know that this ioctl writes the path. */
	memset(m->path, 0, sizeof(m->path));
	if (ioctl(fileno(maps), QUERY, &q))
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

/* ---- one mapping by the text of /proc/self/maps ---- */

static bool parse_line(const char *line, struct mr_file_mapping *m)
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
	snprintf(m->path, sizeof(m->path), "%s", line + at);
	m->path[strcspn(m->path, "\n")] = 0;
	return true;
}

#define PAGE_PRESENT (1ull << 63)
#define PAGE_OF_FILE (1ull << 61)

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

/*
 * Is the page anonymous memory?  Most registered memory is.  This check saves
 * reading the text of all mappings, of which some programs have a thousand.
 * MADV_POPULATE_READ makes the page present: pagemap tells the kind of present
 * pages only.  False also if pagemap does not tell.
 */
static bool is_private(uint64_t va)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE), page = 0;
	bool is_read;

	if (fd < 0)
		return false;
	madvise((void *)(uintptr_t)(va & ~(size - 1)), size,
		MADV_POPULATE_READ);
	is_read = pread(fd, &page, sizeof(page),
			(off_t)(va / size * sizeof(page))) == sizeof(page);
	close(fd);
	return is_read && page & PAGE_PRESENT && !(page & PAGE_OF_FILE);
}

/* Reads the first `most` - 1 bytes of the next line.  The rest of a longer line
 * is a part of a file's name, which may look like a line, and is skipped.
 * False: there is no line. */
static bool read_line(FILE *maps, char *text, int most)
{
	int c;

	if (!fgets(text, most, maps))
		return false;
	if (!strchr(text, '\n'))
		do
			c = getc(maps);
		while (c != '\n' && c != EOF);
	return true;
}

/* Reads on up to the line of the mapping that contains va, and no line twice:
 * a program may split a mapping into thousands.  The lines are in the order of
 * their addresses.  Adds the number of lines that it reads to *lines. */
static bool read_lines(FILE *maps, uint64_t va, struct mr_file_mapping *m,
		       int64_t *lines)
{
	char text[PATH_MAX + 128];

	while (read_line(maps, text, sizeof(text))) {
		++*lines;
		if (parse_line(text, m) && va < m->end)
			return m->start <= va;
	}
	return false;
}

static bool look_up(FILE *maps, uint64_t va, struct mr_file_mapping *m)
{
	int64_t lines = 0;
	bool found = read_lines(maps, va, m, &lines);

	spend_lines(lines);
	return found;
}

/* The allowance limits the cost of this process's own regions, so it does not
 * pay for a peer's lines. */
static bool look_up_peer(FILE *maps, uint64_t va, struct mr_file_mapping *m)
{
	int64_t lines = 0;

	return read_lines(maps, va, m, &lines);
}

/* ---- ranges and files ---- */

/* Does `after` follow m in memory and map the next part of m's file, with equal
 * rights? */
static bool is_continued(const struct mr_file_mapping *m,
			 const struct mr_file_mapping *after)
{
	return after->start == m->end && after->ino == m->ino &&
	       after->major == m->major && after->minor == m->minor &&
	       after->is_shared && after->is_read &&
	       after->is_written == m->is_written &&
	       after->offset == m->offset + (m->end - m->start);
}

/* Finds the mapping of the whole range, if it is shared, may be read and has a
 * file.  The kernel may show one mapping as several lines: *m then joins those
 * from the line that contains va to the line that contains the last byte. */
static bool find_all(find_mapping *find, FILE *maps, uint64_t va,
		     uint64_t bytes, struct mr_file_mapping *m)
{
	struct mr_file_mapping after;

	if (!find(maps, va, m) || !m->is_shared || !m->is_read || !m->ino)
		return false;
	while (m->end < va + bytes) {
		if (!find(maps, m->end, &after) || !is_continued(m, &after))
			return false;
		m->end = after.end;
	}
	return true;
}

static bool is_file(int fd, const struct mr_file_mapping *m)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_ino == m->ino && st.st_dev == makedev(m->major, m->minor);
}

/*
 * Opens the file by O_PATH.  Closing a descriptor that was opened otherwise
 * would release the locks that the program has on the file (fcntl(2)).
 */
static int open_place(const char *path, const struct mr_file_mapping *m)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd >= 0 && !is_file(fd, m)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Opens by O_PATH the file of a descriptor of the program; -1: the open failed,
 * or the descriptor is of another file than m. */
static int open_as(int program_fd, const struct mr_file_mapping *m)
{
	char path[32];

	if (!is_file(program_fd, m))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", program_fd);
	return open_place(path, m);
}

/* The program's descriptor by which the last file was found. */
static struct hint latest;

static int open_by(int program_fd, const struct mr_file_mapping *m)
{
	int fd = open_as(program_fd, m);

	if (fd >= 0)
		hint_set(&latest, program_fd);
	return fd;
}

/*
 * Tries the likely descriptors: first that of the last file, of which a program
 * may register several mappings.  Some programs open all their files and then
 * register the files in the same order: the next file has the next descriptor.
 * Other programs register each file as soon as it is open: that file's
 * descriptor is the number before the lowest free one.
 */
static int open_guess(const struct mr_file_mapping *m)
{
	int last = (int)hint_now(&latest);
	int next_free = open("/", O_PATH | O_CLOEXEC);
	int fd = open_by(last, m);

	if (fd < 0)
		fd = open_by(last + 1, m);
	if (fd < 0)
		fd = open_by(next_free - 1, m);
	if (next_free >= 0)
		close(next_free);
	return fd;
}

/* Tries all descriptors of the program; -1: none is of this file, or the
 * allowance is used up. */
static int open_any(const struct mr_file_mapping *m)
{
	DIR *dir = mr_file_may_look() ? opendir("/proc/self/fd") : NULL;
	const struct dirent *e;
	int64_t lines = 0;
	int fd = -1;

	while (dir && fd < 0 && (e = readdir(dir))) {
		int program_fd = atoi(e->d_name);

		lines++;
		if (e->d_name[0] == '.' || program_fd == dirfd(dir))
			continue;
		fd = open_by(program_fd, m);
	}
	if (dir)
		closedir(dir);
	spend_lines(lines);
	return fd;
}

static bool find_shared(find_mapping *how, FILE *maps, uint64_t va,
			uint64_t bytes, struct mr_file_mapping *m,
			struct share *what)
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

bool mr_file_open(const struct mr_file_mapping *m, struct share *what)
{
	if (m->path[0] == '/')
		what->fd = open_place(m->path, m);
	if (what->fd < 0)
		what->fd = open_guess(m);
	if (what->fd < 0)
		what->fd = open_any(m);
	return what->fd >= 0;
}

bool mr_file_look_by_text(uint64_t va, uint64_t bytes,
			  struct mr_file_mapping *m, struct share *what)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found;

	if (!maps)
		return false;
	found = !is_private(va) &&
		find_shared(look_up, maps, va, bytes, m, what);
	fclose(maps);
	return found;
}

static bool can_be_asked(FILE *maps)
{
	struct mr_file_mapping m;

	return ask_kernel(maps, 0, &m) || errno != ENOTTY;
}

bool mr_file_look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
		  struct share *what)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool is_asked, found;

	if (!maps)
		return false;
	is_asked = can_be_asked(maps);
	found = is_asked && find_shared(ask_kernel, maps, va, bytes, m, what);
	fclose(maps);
	return is_asked ? found : mr_file_look_by_text(va, bytes, m, what);
}

bool mr_file_is(int pid, const struct share *what)
{
	find_mapping *how;
	struct mr_file_mapping m;
	char path[32];
	FILE *maps;
	bool is_all;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return false;
	how = can_be_asked(maps) ? ask_kernel : look_up_peer;
	is_all = find_all(how, maps, what->va, what->bytes, &m);
	fclose(maps);
	return is_all && m.is_written >= !!what->is_written &&
	       m.offset + (what->va - m.start) == what->offset &&
	       makedev(m.major, m.minor) == what->dev && m.ino == what->ino;
}
