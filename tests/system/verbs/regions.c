/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regions: registers thousands of regions, each in a memfd of its own, and
 * counts the calls by which the library finds the files of the regions: calls
 * of fstat on descriptors, and reads of entries of /proc.  Prints a line per
 * case, as verbcheck does; the threads of a case end before its line is
 * printed.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "endpoint.h"

enum {
	MOST = 10000,
	LEAST = 400, /* fewer regions would show nothing */
	PAGE = 4096,
	/* ONCE: calls that the library may make in a case beside those for each
	 * region.  EACH: calls that the library may make for each region. */
	ONCE = 160000,
	EACH = 80,
	THREADS = 16,  /* threads that register */
	TURNS = 500,   /* registrations of each thread */
	OTHERS = 2000, /* other files that are open */
	/* If a thread has not registered after this time, the case fails: the
	 * thread waits for a lock.  The time is shorter than HANG of
	 * lib/system.py, so that the case ends before the suite ends this
	 * program. */
	LATE_S = 300,
};

static struct endpoint e;
static _Atomic long long read_so_far;

/* ---- a thread that registers other memory at each counted call ---- */

/* Two threads take turns.  The calls of the first thread are counted; at each
 * of these calls the second thread registers other memory. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t turn;
	/* asked, done: registrations that the first thread has asked for, and
	 * that the second thread has done */
	int asked, done;
	/* is_over: nothing more is asked for.  is_late: the second thread has
	 * not registered in LATE_S.  has_failed: one of its calls has failed.
	 */
	bool is_over, is_late, has_failed;
} beside = {.lock = PTHREAD_MUTEX_INITIALIZER,
	    .turn = PTHREAD_COND_INITIALIZER};

/* The counter of this thread's calls; NULL: its calls are not counted. */
static _Thread_local int *calls_counted;
static _Thread_local bool is_interrupted;

/* Waits until the second thread has registered and deregistered a region.  The
 * second thread can do so only if the first thread, which calls this function
 * from within the library, holds no lock that a registration needs. */
static void let_other_register(void)
{
	struct timespec late;

	clock_gettime(CLOCK_MONOTONIC, &late);
	late.tv_sec += LATE_S;
	pthread_mutex_lock(&beside.lock);
	beside.asked++;
	pthread_cond_broadcast(&beside.turn);
	while (beside.done < beside.asked && !beside.is_late)
		beside.is_late =
			pthread_cond_clockwait(&beside.turn, &beside.lock,
					       CLOCK_MONOTONIC, &late) != 0;
	is_interrupted = !beside.is_late;
	pthread_mutex_unlock(&beside.lock);
}

static void *register_beside(void *memory)
{
	pthread_mutex_lock(&beside.lock);
	while (!beside.is_over || beside.done < beside.asked) {
		struct ibv_mr *mr;

		if (beside.done == beside.asked) {
			pthread_cond_wait(&beside.turn, &beside.lock);
			continue;
		}
		pthread_mutex_unlock(&beside.lock);
		mr = ibv_reg_mr(e.pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
		pthread_mutex_lock(&beside.lock);
		beside.has_failed |= !mr || ibv_dereg_mr(mr) != 0;
		beside.done++;
		pthread_cond_broadcast(&beside.turn);
	}
	pthread_mutex_unlock(&beside.lock);
	return NULL;
}

static void count_call(void)
{
	read_so_far++;
	if (!calls_counted)
		return;
	++*calls_counted;
	if (is_interrupted)
		let_other_register();
}

/* ---- the calls that are counted ---- */

/*
 * The library calls these functions instead of libc's.  They have the names
 * that a library built with 64-bit offsets calls.
 */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int fstat64(int fd, struct stat64 *st)
{
	static int (*next)(int, struct stat64 *);

	if (!next)
		next = NEXT(fstat64);
	count_call();
	return next(fd, st);
}

struct dirent64 *readdir64(DIR *dir)
{
	static struct dirent64 *(*next)(DIR *);

	if (!next)
		next = NEXT(readdir64);
	count_call();
	return next(dir);
}

/* Before Linux 6.11 the library reads /proc/self/maps by fgets. */
char *fgets(char *text, int size, FILE *file)
{
	static char *(*next)(char *, int, FILE *);

	if (!next)
		next = NEXT(fgets);
	count_call();
	return next(text, size, file);
}

/* Returns how many regions the limit of descriptors allows, but at most MOST.
 */
static int regions_allowed(void)
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

/* Returns whether requests go by packets.  If so, the library does not look for
 * the files of regions. */
static bool goes_by_packets(void)
{
	const char *direct = getenv("ADVERB_DIRECT");

	return direct && *direct == '0';
}

/* Registers as many regions as possible, beside `others` files that are open
 * but not registered. */
static void register_many(int others, bool keeps_file)
{
	int n = regions_allowed() - others,
	    *other = calloc((size_t)others + 1, sizeof(int));
	struct region *all = calloc((size_t)n, sizeof(*all));
	long long began;

	EXPECT(other && all && n >= LEAST);
	if (check_is_wrong())
		return;
	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	for (int i = 0; i < others; i++)
		other[i] = file_open();
	began = read_so_far;
	for (int i = 0; i < n && !check_is_wrong(); i++)
		region_open(&all[i], keeps_file);
	check_expect(read_so_far - began <= ONCE + (long long)EACH * n,
		     "%lld calls were made for %d regions", read_so_far - began,
		     n);
	/* If no call was counted, the library does not call the functions of
	 * this file. */
	EXPECT(read_so_far > began || goes_by_packets());
	for (int i = 0; i < n && all[i].mr; i++)
		region_close(&all[i], keeps_file);
	for (int i = 0; i < others; i++)
		close(other[i]);
	endpoint_close(&e);
	free(all);
	free(other);
}

/* Returns how many calls the registration of *r makes.  The library first tries
 * the descriptor of `guess`, by which it found the last file, then the next
 * higher descriptor, then the number before the lowest free one.  None of these
 * three refers to the file of *r, so the library finds that file only by
 * reading the folder of descriptors. */
static int count_calls(const struct region *guess, struct region *r,
		       bool interrupted)
{
	int calls = 0;

	EXPECT(ibv_dereg_mr(ibv_reg_mr(e.pd, guess->at, PAGE,
				       IBV_ACCESS_LOCAL_WRITE)) == 0);
	calls_counted = &calls;
	is_interrupted = interrupted;
	r->mr = ibv_reg_mr(e.pd, r->at, PAGE, IBV_ACCESS_LOCAL_WRITE);
	is_interrupted = false;
	calls_counted = NULL;
	EXPECT(r->mr && ibv_dereg_mr(r->mr) == 0);
	return calls;
}

/* While the library looks for a file, the library holds no lock that other
 * registrations need.  If other registrations begin and end during the search,
 * the library does not start the search again. */
static void a_look_that_others_interrupt(void)
{
	static uint8_t memory[PAGE];
	struct region r[7];
	int alone, interrupted;
	pthread_t other;

	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	for (int i = 0; i < 7; i++) {
		r[i].fd = file_open();
		r[i].at = file_map(r[i].fd);
	}
	EXPECT(pthread_create(&other, NULL, register_beside, memory) == 0);
	alone = count_calls(&r[0], &r[2], false);
	interrupted = count_calls(&r[0], &r[2], true);
	pthread_mutex_lock(&beside.lock);
	beside.is_over = true;
	pthread_cond_broadcast(&beside.turn);
	pthread_mutex_unlock(&beside.lock);
	pthread_join(other, NULL);
	check_expect(!beside.is_late,
		     "the other thread could not register meanwhile");
	check_expect(!beside.has_failed, "another region was refused");
	check_expect(alone == interrupted,
		     "%d calls, and %d if others "
		     "register meanwhile",
		     alone, interrupted);
	check_expect(alone > 7 || goes_by_packets(),
		     "%d calls: the folder was not read", alone);
	for (int i = 0; i < 7; i++) {
		munmap(r[i].at, PAGE);
		close(r[i].fd);
	}
	endpoint_close(&e);
}

/* Registers and deregisters TURNS regions.  Returns NULL if all succeeded. */
static void *register_in_turn(void *unused)
{
	void *wrong = NULL;

	(void)unused;
	for (int i = 0; i < TURNS && !wrong; i++) {
		int fd = memfd_create("turn", MFD_CLOEXEC);
		void *p = fd < 0 || ftruncate(fd, PAGE)
				  ? MAP_FAILED
				  : mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					 MAP_SHARED, fd, 0);
		struct ibv_mr *mr =
			p == MAP_FAILED ? NULL
					: ibv_reg_mr(e.pd, p, PAGE,
						     IBV_ACCESS_LOCAL_WRITE);

		if (!mr || ibv_dereg_mr(mr) || munmap(p, PAGE) || close(fd))
			wrong = &e;
	}
	return wrong;
}

static void threads_that_register(void)
{
	int others[OTHERS], count = regions_allowed() / 2 < OTHERS
					    ? regions_allowed() / 2
					    : OTHERS;
	long long began, most = ONCE + (long long)EACH * THREADS * TURNS;
	pthread_t thread[THREADS];

	endpoint_open(&e, IBV_ACCESS_LOCAL_WRITE, 0);
	for (int i = 0; i < count; i++)
		others[i] = file_open();
	began = read_so_far;
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&thread[i], NULL, register_in_turn,
				      NULL) == 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;

		pthread_join(thread[i], &wrong);
		EXPECT(!wrong);
	}
	/* Each thread may have begun to read the folder, which takes two calls
	 * for each file, before the library stopped reading folders. */
	most += 2LL * THREADS * (count + 100);
	check_expect(read_so_far - began <= most,
		     "%lld calls were made for %d regions", read_so_far - began,
		     THREADS * TURNS);
	EXPECT(read_so_far > began || goes_by_packets());
	for (int i = 0; i < count; i++)
		close(others[i]);
	endpoint_close(&e);
}

static void files_that_are_open(void)
{
	register_many(0, true);
}

/* The files of the regions are closed, so no descriptor leads to them. */
static void files_that_are_closed(void)
{
	register_many(regions_allowed() / 2, false);
}

int main(void)
{
	/* This case is first: a later case uses up the library's allowance of
	 * lines of /proc (memory/mr_file.c), and then the library does not read
	 * the folder of descriptors. */
	check_run("a search for a region's file makes no more calls if other "
		  "regions are registered meanwhile",
		  a_look_that_others_interrupt);
	check_run("thousands of memfds are registered at a bounded cost each",
		  files_that_are_open);
	check_run("closed memfds are registered at a bounded cost each, beside "
		  "thousands of files",
		  files_that_are_closed);
	check_run("16 threads register and deregister memfds at a bounded cost "
		  "each, beside thousands of files",
		  threads_that_register);
	return check_end();
}
