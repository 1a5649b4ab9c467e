/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regions: registers thousands of regions, each a memfd of its own, and counts
 * what the library reads to find out what lies behind them: descriptors that it
 * looks at and entries of /proc.  Prints a line a case, as verbcheck does; one
 * thread.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cases.h"
#include "ends.h"

enum {
	MOST = 10000,
	LEAST = 400, /* below that there is nothing to be seen */
	PAGE = 4096,
	/* Calls that the library may make once, and for each region. */
	ONCE = 160000,
	EACH = 80,
};

static struct ends e;
static long long read_so_far;

/*
 * The library's calls come here first.  It is built with 64 bits for offsets,
 * and asks for those names.
 */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fstat64(int fd, struct stat64 *st)
{
	static int (*next)(int, struct stat64 *);

	if (!next)
		next = NEXT(fstat64);
	read_so_far++;
	return next(fd, st);
}

struct dirent64 *readdir64(DIR *dir)
{
	static struct dirent64 *(*next)(DIR *);

	if (!next)
		next = NEXT(readdir64);
	read_so_far++;
	return next(dir);
}

/* By the text of the mappings, before Linux 6.11. */
char *fgets(char *text, int size, FILE *file)
{
	static char *(*next)(char *, int, FILE *);

	if (!next)
		next = NEXT(fgets);
	read_so_far++;
	return next(text, size, file);
}

/* Of so many regions at most, all that the limit of descriptors allows. */
static int room(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	return files.rlim_cur > MOST + 200 ? MOST : (int)files.rlim_cur - 200;
}

static int file_open(void)
{
	int fd = memfd_create("region", MFD_CLOEXEC);

	EXPECT(fd >= 0 && ftruncate(fd, PAGE) == 0);
	return fd;
}

static void *file_map(int fd)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

struct region {
	struct ibv_mr *mr;
	void *at;
	int fd;
};

static void region_open(struct region *r, bool keeps_file)
{
	r->fd = file_open();
	r->at = file_map(r->fd);
	if (!keeps_file)
		close(r->fd);
	r->mr = ibv_reg_mr(e.pd, r->at, PAGE, IBV_ACCESS_LOCAL_WRITE);
	EXPECT(r->mr);
}

static void region_close(struct region *r, bool keeps_file)
{
	EXPECT(ibv_dereg_mr(r->mr) == 0);
	munmap(r->at, PAGE);
	if (keeps_file)
		close(r->fd);
}

/* `others` files that are open are not registered. */
static void register_many(int others, bool keeps_file)
{
	int n = room() - others,
	    *other = calloc((size_t)others + 1, sizeof(int));
	struct region *all = calloc((size_t)n, sizeof(*all));
	const char *direct;
	long long began;

	EXPECT(other && all && n >= LEAST);
	if (cases_is_wrong())
		return;
	ends_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	for (int i = 0; i < others; i++)
		other[i] = file_open();
	began = read_so_far;
	for (int i = 0; i < n && !cases_is_wrong(); i++)
		region_open(&all[i], keeps_file);
	cases_expect(read_so_far - began <= ONCE + (long long)EACH * n,
		     "%lld calls were made for %d regions", read_so_far - began,
		     n);
	/* that one was seen at all; nobody looks for who goes by packets */
	direct = getenv("ADVERB_DIRECT");
	EXPECT(read_so_far > began || (direct && *direct == '0'));
	for (int i = 0; i < n && all[i].mr; i++)
		region_close(&all[i], keeps_file);
	for (int i = 0; i < others; i++)
		close(other[i]);
	ends_close(&e);
	free(all);
	free(other);
}

static void files_that_are_open(void)
{
	register_many(0, true);
}

/* They are not to be found among the descriptors. */
static void files_that_are_closed(void)
{
	register_many(room() / 2, false);
}

int main(void)
{
	cases_run("thousands of memfds are registered at a bounded cost each",
		  files_that_are_open);
	cases_run("so are memfds that are closed, beside thousands of files",
		  files_that_are_closed);
	return cases_end();
}
