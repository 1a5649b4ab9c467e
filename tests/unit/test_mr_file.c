/* SPDX-License-Identifier: BSD-2-Clause */
/* memory/mr_file and memory/peer_maps: the file that backs memory is found, and
 * a peer maps the same bytes. */
#include "test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/peer_maps.h"
#include "memory/mr_file.h"

#define PAGE	    4096u
#define PAGES	    8u
#define BYTES	    (PAGES * PAGE)
#define MANY	    1024u
#define ARENA_BYTES (64u << 20)

typedef bool look(uint64_t va, uint64_t bytes, struct mr_file_mapping *m,
		  struct share *what);

static look *const ways[] = {mr_file_look, mr_file_look_by_text};

static int new_file(void)
{
	int fd = memfd_create("backing", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, BYTES), 0);
	return fd;
}

static uint8_t *map_file(void *at, size_t bytes, int kind, int fd, off_t offset)
{
	int flags = kind | (at ? MAP_FIXED : 0) | (fd < 0 ? MAP_ANONYMOUS : 0);
	uint8_t *p = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* Finds and opens the file behind memory.  True: the caller closes what->fd. */
static bool open_found(look *how, const void *p, size_t bytes,
		       struct share *what)
{
	struct mr_file_mapping m;

	return how((uintptr_t)p, bytes, &m, what) && mr_file_open(&m, what);
}

static bool is_found_by(look *how, const void *p, size_t bytes,
			struct share *what)
{
	bool is_found = open_found(how, p, bytes, what);

	if (is_found)
		close(what->fd);
	return is_found;
}

static void a_file_that_is_open_is_found(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, 4 * PAGE, MAP_SHARED, fd, 2 * PAGE);
	struct stat st;

	fstat(fd, &st);
	for (int i = 0; i < 2; i++) {
		struct share what;

		assert_true(
			is_found_by(ways[i], p + PAGE + 5, 2 * PAGE, &what));
		assert_int_equal(what.va, (uintptr_t)p);
		assert_int_equal(what.bytes, 4 * PAGE);
		assert_int_equal(what.offset, 2 * PAGE);
		assert_int_equal(what.dev, st.st_dev);
		assert_int_equal(what.ino, st.st_ino);
		assert_int_equal(what.is_written, 1);
		assert_int_not_equal(what.fd, fd);
		assert_false(is_found_by(ways[i], p + 1, 4 * PAGE, &what));
	}
	munmap(p, 4 * PAGE);
	close(fd);
}

static void memory_that_no_peer_may_map_has_no_file(void **state)
{
	int fd = new_file(), closed = new_file();
	uint8_t *private = map_file(NULL, PAGE, MAP_PRIVATE, fd, 0);
	uint8_t *none = map_file(NULL, PAGE, MAP_PRIVATE, -1, 0);
	uint8_t *lost = map_file(NULL, PAGE, MAP_SHARED, closed, 0);
	uint8_t *closed_to_all = map_file(NULL, PAGE, MAP_SHARED, fd, 0);

	close(closed);
	for (int i = 0; i < 2; i++) {
		struct share what;

		assert_false(is_found_by(ways[i], private, 64, &what));
		assert_false(is_found_by(ways[i], none, 64, &what));
		assert_false(is_found_by(ways[i], lost, 64, &what));
		assert_false(is_found_by(ways[i], &what, 8, &what));
		assert_false(is_found_by(ways[i], none, 0, &what));
		assert_false(is_found_by(ways[i], NULL, 8, &what));
	}
	/* a peer could read memory that this process may not read */
	assert_int_equal(mprotect(closed_to_all, PAGE, PROT_NONE), 0);
	for (int i = 0; i < 2; i++) {
		struct share what;

		assert_false(is_found_by(ways[i], closed_to_all, 64, &what));
	}
	munmap(closed_to_all, PAGE);
	munmap(private, PAGE);
	munmap(none, PAGE);
	munmap(lost, PAGE);
	close(fd);
}

/* A call of mprotect or madvise for a part splits a mapping. */
static void a_mapping_may_be_in_pieces(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);

	madvise(p + PAGE, PAGE, MADV_DONTDUMP);
	for (int i = 0; i < 2; i++) {
		struct share what;

		assert_true(is_found_by(ways[i], p, BYTES, &what));
		assert_int_equal(what.va, (uintptr_t)p);
		assert_int_equal(what.bytes, BYTES);
	}
	/* the pieces are not in the order of the file */
	map_file(p + 4 * PAGE, PAGE, MAP_SHARED, fd, 0);
	for (int i = 0; i < 2; i++) {
		struct share what;

		assert_false(is_found_by(ways[i], p, BYTES, &what));
		assert_true(is_found_by(ways[i], p, 4 * PAGE, &what));
	}
	munmap(p, BYTES);
	close(fd);
}

/* The process has an allowance of 65536 lines at first.  The square of the
 * number of pieces is larger. */
static void many_pieces_of_a_mapping_take_a_line_each(void **state)
{
	int fd = new_file();
	struct share what;
	uint8_t *p;

	assert_int_equal(ftruncate(fd, MANY * PAGE), 0);
	p = map_file(NULL, MANY * PAGE, MAP_SHARED, fd, 0);
	for (uint32_t i = 0; i < MANY; i += 2)
		madvise(p + i * PAGE, PAGE, MADV_DONTDUMP);
	for (int i = 0; i < 8; i++) {
		assert_true(mr_file_may_look());
		assert_true(is_found_by(mr_file_look_by_text, p, MANY * PAGE,
					&what));
		assert_int_equal(what.bytes, MANY * PAGE);
	}
	assert_true(mr_file_may_look());
	munmap(p, MANY * PAGE);
	close(fd);
}

static void a_file_that_has_a_name_need_not_be_open(void **state)
{
	char path[] = "/dev/shm/backing-XXXXXX";
	int fd = mkstemp(path);
	uint8_t *p;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	p = map_file(NULL, PAGE, MAP_SHARED, fd, 0);
	close(fd);
	for (int i = 0; i < 2; i++) {
		struct share what;

		assert_true(is_found_by(ways[i], p, PAGE, &what));
	}
	unlink(path);
	for (int i = 0; i < 2; i++) {
		struct share what;

		assert_false(is_found_by(ways[i], p, PAGE, &what));
	}
	munmap(p, PAGE);
}

/* ---- a peer that maps the file; this process is the peer ---- */

static struct hca hca;
static struct space no_space;

static int set_up(void **state)
{
	uint64_t seed[4] = {1, 2, 3, 4};
	struct arena a;

	arena_init(&a, map_file(NULL, ARENA_BYTES, MAP_PRIVATE, -1, 0),
		   ARENA_BYTES);
	return hca_init(&hca, a, &no_space, seed);
}

static int tear_down(void **state)
{
	return munmap(hca.arena.base, ARENA_BYTES);
}

/* Registers memory.  Returns the number of its shared mapping; 0: the memory
 * has no file, or the table of shared files is full. */
static uint32_t enter_region(const uint8_t *p, size_t bytes)
{
	struct share what;
	bool is_found = open_found(mr_file_look, p, bytes, &what);
	uint32_t again =
		is_found ? share_again(&hca, (uintptr_t)p, bytes, &what) : 0;
	uint32_t number = again ? again
				: share_enter(&hca, (uintptr_t)p, bytes,
					      is_found ? &what : NULL);

	if (is_found && (again || !number))
		close(what.fd);
	return number;
}

static void leave_region(uint32_t number)
{
	int fd = share_leave(&hca, number);

	if (fd >= 0)
		close(fd);
}

static uint8_t *maps_at(const struct peer_maps *a, const uint8_t *p,
			size_t bytes)
{
	struct space_vec v = {(uintptr_t)p, bytes};

	return peer_maps_at(a, &v, true);
}

static void a_peer_that_maps_the_file_has_the_same_bytes(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0), *ours;
	struct peer_maps a;
	uint32_t number = enter_region(p + 10, PAGE);

	assert_int_not_equal(number, 0);
	peer_maps_init(&a, &hca, getpid());
	assert_null(maps_at(&a, p, PAGE));
	peer_maps_look(&a);
	ours = maps_at(&a, p + 100, PAGE);
	assert_non_null(ours);
	assert_ptr_not_equal(ours, p + 100);
	ours[5] = 77;
	assert_int_equal(p[105], 77);
	assert_null(maps_at(&a, p + BYTES - 1, 2));
	assert_null(maps_at(&a, p - 1, 2));
	leave_region(number);
	assert_null(maps_at(&a, p, PAGE));
	peer_maps_look(&a);
	assert_int_equal(a.count, 0);
	peer_maps_fini(&a);
	munmap(p, BYTES);
	close(fd);
}

/* Returns the descriptor that the table of shared files names first; -1: none.
 */
static int first_shared_fd(void)
{
	for (uint32_t row = 0; row < SHARE_MAX; row++) {
		struct share s = share_read(&hca, row);

		if (shared_own(&s.serial))
			return s.fd;
	}
	return -1;
}

static bool has_been_opened(int watch)
{
	struct inotify_event e;

	return read(watch, &e, sizeof(e)) > 0;
}

/* Opening a FIFO would wake processes that wait for a reader. */
static void a_fifo_in_the_files_place_is_not_opened(void **state)
{
	int fd = new_file(), watch = inotify_init1(IN_NONBLOCK), fifo;
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	char name[] = "/tmp/adverb-fifo-XXXXXX";
	uint32_t number = enter_region(p, PAGE);
	struct peer_maps a;

	close(mkstemp(name));
	unlink(name);
	assert_int_equal(mkfifo(name, 0600), 0);
	assert_true(inotify_add_watch(watch, name, IN_OPEN) >= 0);
	fifo = open(name, O_PATH);
	dup2(fifo, first_shared_fd());
	peer_maps_init(&a, &hca, getpid());
	peer_maps_look(&a);
	assert_null(maps_at(&a, p, PAGE));
	assert_false(has_been_opened(watch));
	close(open(name, O_RDWR)); /* this open is noticed */
	assert_true(has_been_opened(watch));
	peer_maps_fini(&a);
	leave_region(number);
	unlink(name);
	close(fifo);
	close(watch);
	munmap(p, BYTES);
	close(fd);
}

static void one_mapping_serves_all_regions_in_it(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t one = enter_region(p, PAGE),
		 two = enter_region(p + PAGE, PAGE);
	struct peer_maps a;

	assert_int_equal(one, two);
	peer_maps_init(&a, &hca, getpid());
	peer_maps_look(&a);
	leave_region(one);
	assert_non_null(maps_at(&a, p, PAGE));
	leave_region(two);
	assert_null(maps_at(&a, p, PAGE));
	peer_maps_fini(&a);
	munmap(p, BYTES);
	close(fd);
}

static void a_region_of_an_existing_row_needs_no_descriptor(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t number;
	struct share what;

	assert_true(is_found_by(mr_file_look, p, PAGE, &what));
	what.fd = -1;
	assert_int_equal(share_again(&hca, (uintptr_t)p, PAGE, &what), 0);
	number = enter_region(p, PAGE);
	assert_int_equal(share_again(&hca, (uintptr_t)p, BYTES, &what), number);
	what.offset += PAGE;
	assert_int_equal(share_again(&hca, (uintptr_t)p, PAGE, &what), 0);
	assert_int_equal(share_leave(&hca, number), -1);
	leave_region(number);
	munmap(p, BYTES);
	close(fd);
}

static enum share_room room_for(const uint8_t *p)
{
	return share_room(&hca, (uintptr_t)p, PAGE);
}

static void a_full_table_has_room_for_regions_of_its_mappings(void **state)
{
	/* private pages lie between the shared pages, so that no mapping
	 * continues where another ends */
	uint8_t *all = map_file(NULL, 2 * SHARE_MAX * PAGE, MAP_PRIVATE, -1, 0);
	uint8_t *beyond = map_file(NULL, PAGE, MAP_PRIVATE, -1, 0);
	uint32_t number[SHARE_MAX];
	int fd = new_file();

	for (size_t i = 0; i < SHARE_MAX; i++) {
		uint8_t *p = all + 2 * i * PAGE;

		map_file(p, PAGE, MAP_SHARED, fd, 0);
		assert_int_equal(room_for(p), SHARE_FREE);
		number[i] = enter_region(p, PAGE);
		assert_int_not_equal(number[i], 0);
		assert_int_equal(room_for(p), SHARE_MET);
	}
	assert_int_equal(room_for(beyond), SHARE_FULL);
	assert_int_equal(room_for(all), SHARE_MET);
	leave_region(number[7]);
	assert_int_equal(room_for(beyond), SHARE_FREE);
	assert_int_equal(room_for(all + 14 * PAGE), SHARE_FREE);
	for (size_t i = 0; i < SHARE_MAX; i++)
		if (i != 7)
			leave_region(number[i]);
	munmap(all, 2 * SHARE_MAX * PAGE);
	munmap(beyond, PAGE);
	close(fd);
}

static bool is_through;

/* While a thread posts, the thread looks at a peer's rows, under a lock.  If
 * the look were a cancellation point, a cancelled thread would leave the lock
 * held. */
static void *look_while_cancelled(void *arg)
{
	pthread_cancel(pthread_self());
	peer_maps_look(arg);
	is_through = true;
	pthread_testcancel();
	return NULL;
}

static void a_look_is_no_cancellation_point(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t number = enter_region(p, PAGE);
	struct peer_maps a;
	pthread_t thread;
	void *how;

	peer_maps_init(&a, &hca, getpid());
	assert_int_equal(
		pthread_create(&thread, NULL, look_while_cancelled, &a), 0);
	assert_int_equal(pthread_join(thread, &how), 0);
	assert_true(is_through);
	assert_ptr_equal(how, PTHREAD_CANCELED);
	assert_non_null(maps_at(&a, p, PAGE));
	peer_maps_fini(&a);
	leave_region(number);
	munmap(p, BYTES);
	close(fd);
}

static bool is_outdated(struct share_look *l)
{
	bool was = l->is_outdated;

	l->is_outdated = false;
	return was;
}

/* The test registers memory with and without a file, in a new row and in an
 * existing row. */
static void a_registration_outdates_looks_at_its_addresses(void **state)
{
	uint8_t *private = map_file(NULL, PAGE, MAP_PRIVATE, -1, 0);
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	struct share_look all, first, other;
	uint32_t number;

	share_look_begin(&hca, &all, (uintptr_t)p, BYTES);
	share_look_begin(&hca, &first, (uintptr_t)p, PAGE);
	share_look_begin(&hca, &other, (uintptr_t) private, PAGE);
	number = enter_region(p + PAGE, PAGE);
	assert_true(is_outdated(&all));
	assert_false(is_outdated(&first) || is_outdated(&other));
	assert_int_equal(enter_region(p, PAGE), number);
	assert_true(is_outdated(&all) && is_outdated(&first));
	assert_int_equal(enter_region(private, PAGE), 0);
	assert_true(is_outdated(&other));
	leave_region(number);
	leave_region(number);
	assert_false(is_outdated(&all) || is_outdated(&first));
	share_look_end(&all);
	leave_region(enter_region(p, PAGE));
	assert_false(is_outdated(&all));
	assert_true(is_outdated(&first));
	share_look_end(&first);
	share_look_end(&other);
	munmap(private, PAGE);
	munmap(p, BYTES);
	close(fd);
}

/* The latest registration of an address counts. */
static void
memory_mapped_over_a_region_is_not_taken_for_the_region(void **state)
{
	int fd = new_file(), other = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t one = enter_region(p, BYTES), two, three;
	struct peer_maps a;

	peer_maps_init(&a, &hca, getpid());
	peer_maps_look(&a);
	assert_non_null(maps_at(&a, p, PAGE));
	map_file(p + PAGE, PAGE, MAP_PRIVATE, -1, 0);
	two = enter_region(p + PAGE, PAGE);
	assert_int_equal(two, 0);
	assert_null(maps_at(&a, p, PAGE));
	map_file(p, BYTES, MAP_SHARED, other, 0);
	three = enter_region(p, PAGE);
	assert_int_not_equal(three, 0);
	peer_maps_look(&a);
	*maps_at(&a, p, 1) = 3;
	assert_int_equal(*p, 3);
	leave_region(one);
	assert_non_null(maps_at(&a, p, 1));
	leave_region(three);
	leave_region(two);
	peer_maps_fini(&a);
	munmap(p, BYTES);
	close(fd);
	close(other);
}

static void regions_beyond_the_table_are_not_mapped(void **state)
{
	uint32_t number[SHARE_MAX + 1], fds = 0, next = 0;
	uint8_t *p[SHARE_MAX + 1];
	struct peer_maps a;

	peer_maps_init(&a, &hca, getpid());
	for (int i = 0; i <= SHARE_MAX; i++) {
		int fd = new_file();

		p[i] = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
		number[i] = enter_region(p[i], BYTES);
		assert_int_equal(number[i] == 0, i == SHARE_MAX);
		close(fd);
	}
	peer_maps_look(&a);
	assert_int_equal(a.count, SHARE_MAX);
	assert_null(maps_at(&a, p[SHARE_MAX], 1));
	while (share_next_fd(&hca, &next) >= 0)
		fds++;
	assert_int_equal(fds, SHARE_MAX);
	for (int i = 0; i <= SHARE_MAX; i++) {
		leave_region(number[i]);
		munmap(p[i], BYTES);
	}
	peer_maps_look(&a);
	assert_int_equal(a.count, 0);
}

/* If this process wrote to the memory, the peer could make this process write
 * to a file that the peer may only read. */
static void memory_that_a_peer_only_reads_is_not_written(void **state)
{
	char path[] = "/dev/shm/backing-XXXXXX";
	int fd = mkstemp(path), reader = open(path, O_RDONLY | O_CLOEXEC);
	struct share *row = arena_at(&hca.arena, hca.shared->shares);
	struct peer_maps a;
	uint32_t number;
	uint8_t *p;

	assert_int_equal(ftruncate(fd, BYTES), 0);
	p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, reader, 0);
	number = enter_region(p, BYTES);
	peer_maps_init(&a, &hca, getpid());
	row->is_written = 1;
	peer_maps_look(&a);
	assert_int_equal(a.count, 0);
	row->is_written = 0;
	row->offset = PAGE;
	row->bytes -= PAGE;
	a.version = 0;
	peer_maps_look(&a);
	assert_int_equal(a.count, 0);
	row->offset = 0;
	a.version = 0;
	peer_maps_look(&a);
	assert_int_equal(a.count, 1);
	peer_maps_fini(&a);
	leave_region(number);
	munmap(p, BYTES);
	close(reader);
	close(fd);
	unlink(path);
}

static bool is_locked(int fd)
{
	struct flock l = {.l_type = F_WRLCK};
	pid_t pid = fork();
	int status = -1;

	assert_true(pid >= 0);
	if (!pid)
		_exit(!fcntl(fd, F_GETLK, &l) && l.l_type == F_WRLCK ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

/* A process that closes any descriptor of a file loses its locks of that file
 * (fcntl(2)). */
static void the_program_keeps_its_locks(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	struct flock l = {.l_type = F_WRLCK};
	uint32_t number, again;
	struct peer_maps a;

	assert_int_equal(fcntl(fd, F_SETLK, &l), 0);
	number = enter_region(p, PAGE);
	again = enter_region(p, PAGE);
	assert_true(is_locked(fd));
	peer_maps_init(&a, &hca, getpid());
	peer_maps_look(&a);
	assert_non_null(maps_at(&a, p, PAGE));
	assert_true(is_locked(fd));
	leave_region(number);
	leave_region(again);
	assert_true(is_locked(fd));
	peer_maps_fini(&a);
	munmap(p, BYTES);
	close(fd);
}

/* Returns whether the mapping at p goes into a core dump, by its flags in smaps
 * (dd: no). */
static bool is_dumped(const uint8_t *p)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	uintptr_t start, end;
	bool is_it = false, is_dumped = true;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &start, &end) ==
		    2)
			is_it = start == (uintptr_t)p;
		else if (is_it && !strncmp(line, "VmFlags:", 8))
			is_dumped = !strstr(line, " dd");
	}
	fclose(f);
	return is_dumped;
}

static void memory_of_a_peer_is_not_in_our_core(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t number = enter_region(p, PAGE);
	struct peer_maps a;

	peer_maps_init(&a, &hca, getpid());
	peer_maps_look(&a);
	assert_true(is_dumped(p));
	assert_false(is_dumped(maps_at(&a, p, PAGE)));
	peer_maps_fini(&a);
	leave_region(number);
	munmap(p, BYTES);
	close(fd);
}

/* Locking the mapping would allocate the pages of the file, which no process
 * has touched. */
static void a_program_that_locks_its_memory_locks_no_peers_memory(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t number = enter_region(p, PAGE);
	struct peer_maps a;
	struct stat st;

	peer_maps_init(&a, &hca, getpid());
	if (mlockall(MCL_FUTURE))
		SKIP_FOR("this user may not lock memory");
	peer_maps_look(&a);
	munlockall();
	assert_int_equal(a.count, 1);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_blocks, 0);
	peer_maps_fini(&a);
	leave_region(number);
	munmap(p, BYTES);
	close(fd);
}

static void a_region_of_no_bytes_changes_no_mapping(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t number = enter_region(p, BYTES);
	struct peer_maps a;

	peer_maps_init(&a, &hca, getpid());
	peer_maps_look(&a);
	assert_int_equal(enter_region(p + PAGE, 0), 0);
	assert_non_null(maps_at(&a, p, PAGE));
	peer_maps_fini(&a);
	leave_region(number);
	munmap(p, BYTES);
	close(fd);
}

/* The table is in another process's arena, and may have any contents. */
static void a_mapping_with_wrong_numbers_is_not_mapped(void **state)
{
	int fd = new_file();
	uint8_t *p = map_file(NULL, BYTES, MAP_SHARED, fd, 0);
	uint32_t number = enter_region(p, BYTES);
	struct share *row = arena_at(&hca.arena, hca.shared->shares);
	struct peer_maps a;

	peer_maps_init(&a, &hca, getpid());
	row->ino++;
	peer_maps_look(&a);
	assert_int_equal(a.count, 0);
	row->ino--;
	row->va++;
	a.version = 0;
	peer_maps_look(&a);
	assert_int_equal(a.count, 0);
	row->va--;
	hca.shared->shares = ARENA_BYTES - 8;
	a.version = 0;
	peer_maps_look(&a);
	assert_int_equal(a.count, 0);
	hca.shared->shares = hca_off(&hca, row);
	leave_region(number);
	munmap(p, BYTES);
	close(fd);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_that_is_open_is_found),
		cmocka_unit_test(memory_that_no_peer_may_map_has_no_file),
		cmocka_unit_test(a_mapping_may_be_in_pieces),
		cmocka_unit_test(many_pieces_of_a_mapping_take_a_line_each),
		cmocka_unit_test(a_file_that_has_a_name_need_not_be_open),
		EACH(a_peer_that_maps_the_file_has_the_same_bytes),
		EACH(a_fifo_in_the_files_place_is_not_opened),
		EACH(one_mapping_serves_all_regions_in_it),
		EACH(a_region_of_an_existing_row_needs_no_descriptor),
		EACH(a_full_table_has_room_for_regions_of_its_mappings),
		EACH(a_look_is_no_cancellation_point),
		EACH(a_registration_outdates_looks_at_its_addresses),
		EACH(memory_mapped_over_a_region_is_not_taken_for_the_region),
		EACH(regions_beyond_the_table_are_not_mapped),
		EACH(memory_that_a_peer_only_reads_is_not_written),
		EACH(the_program_keeps_its_locks),
		EACH(memory_of_a_peer_is_not_in_our_core),
		EACH(a_program_that_locks_its_memory_locks_no_peers_memory),
		EACH(a_region_of_no_bytes_changes_no_mapping),
		EACH(a_mapping_with_wrong_numbers_is_not_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
