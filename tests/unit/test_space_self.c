/* SPDX-License-Identifier: BSD-2-Clause */
/* memory/space_self: mapped memory of this process is copied, other memory is
 * refused. */
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "memory/copy_nofault.h"
#include "memory/space_self.h"
#include "util/fd_identity.h"
#include "util/instrument.h"

#define PAGE 4096
/* The test runs with copy_nofault, which open_guard opens. */
#define GUARDED(test)                                                          \
	cmocka_unit_test_prestate_setup_teardown(test, NULL, close_guard,      \
						 (void *)&is_guarded)

/* Returns a time late enough for copy_nofault_turn to check the handlers again.
 */
static uint64_t later_ns(void)
{
	static uint64_t now;

	return now += 1000000;
}

static struct space_self self;

static int set_up(void **state)
{
	space_self_init(&self);
	return 0;
}

/* The initial state of a test that runs with copy_nofault. */
static const bool is_guarded = true;

/* A test calls this function.  The function is not the setup of the test, since
 * cmocka sets its own handlers of signals between the setup and the test. */
static void open_guard(void **state)
{
	if (!*state)
		return;
	copy_nofault_open();
	copy_nofault_turn(later_ns());
#if defined(__x86_64__)
	assert_true(copy_nofault_is_on() || instrument_by_valgrind());
#endif
}

static int close_guard(void **state)
{
	copy_nofault_close();
	return 0;
}

static int tear_down(void **state)
{
	space_self_fini(&self);
	return 0;
}

static uint8_t *map_pages(size_t pages, int prot)
{
	void *p = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static uint64_t va_of(const void *p)
{
	return (uintptr_t)p;
}

static void bytes_go_to_their_pieces_and_come_back(void **state)
{
	uint8_t to[64] = {0}, back[21];
	const char *src = "one two three and four";
	struct space_vec v[4] = {
		{va_of(to), 3},
		{va_of(to + 10), 0},
		{va_of(to + 20), 7},
		{va_of(to + 41), 11},
	};

	open_guard(state);
	assert_int_equal(self.space.ops->write(&self.space, v, 4, src), 0);
	assert_memory_equal(to, "one\0", 4);
	assert_memory_equal(to + 20, " two th\0", 8);
	assert_memory_equal(to + 41, "ree and fou\0", 12);
	assert_int_equal(self.space.ops->read(&self.space, v, 4, back), 0);
	assert_memory_equal(back, src, sizeof(back));
}

/* The CRC covers the bytes of all pieces in the order of src.  The tail, which
 * is stored last (hca/space.h), is at the end of that order, too. */
static void the_crc_of_a_write_is_that_of_its_bytes(void **state)
{
	static uint8_t src[1200], to[3000];
	struct space_vec v[3] = {
		{va_of(to + 3), 700},
		{va_of(to + 1000), 0},
		{va_of(to + 1001), 500},
	};

	open_guard(state);
	for (size_t i = 0; i < sizeof(src); i++)
		src[i] = (uint8_t)(i * 7 + i / 251);
	for (int kind = 0; kind < CRC_KINDS; kind++) {
		uint32_t crc = 5;

		memset(to, 0, sizeof(to));
		assert_int_equal(space_write_crc(&self.space, v, 3, src,
						 (enum crc_kind)kind, &crc),
				 0);
		assert_int_equal(crc, crc_update((enum crc_kind)kind, 5, src,
						 sizeof(src)));
		assert_memory_equal(to + 3, src, 700);
		assert_memory_equal(to + 1001, src + 700, 500);
	}
}

static void unmapped_memory_is_refused_without_a_crash(void **state)
{
	uint8_t *p = map_pages(2, PROT_READ | PROT_WRITE), buf[16] = {1};
	struct space_vec v = {va_of(p + PAGE - 8), 16};

	open_guard(state);
	munmap(p + PAGE, PAGE);
	assert_int_equal(self.space.ops->write(&self.space, &v, 1, buf),
			 -EFAULT);
	assert_int_equal(self.space.ops->read(&self.space, &v, 1, buf),
			 -EFAULT);
	munmap(p, PAGE);
}

static void memory_that_may_only_be_read_is_not_written(void **state)
{
	uint8_t *p = map_pages(1, PROT_READ), buf[16] = {1};
	struct space_vec v = {va_of(p), 16};

	open_guard(state);
	assert_int_equal(self.space.ops->write(&self.space, &v, 1, buf),
			 -EFAULT);
	assert_int_equal(self.space.ops->read(&self.space, &v, 1, buf), 0);
	assert_int_equal(buf[0], 0);
	munmap(p, PAGE);
}

static void atomics_change_the_value_and_return_the_old_one(void **state)
{
	uint64_t word = 5, old = 0;

	assert_int_equal(self.space.ops->atomic(&self.space, SPACE_FETCH_ADD,
						va_of(&word), 3, 0, &old),
			 0);
	assert_int_equal(old, 5);
	assert_int_equal(word, 8);
	assert_int_equal(self.space.ops->atomic(&self.space, SPACE_CAS,
						va_of(&word), 1, 7, &old),
			 0);
	assert_int_equal(old, 8);
	assert_int_equal(word, 8);
	assert_int_equal(self.space.ops->atomic(&self.space, SPACE_CAS,
						va_of(&word), 1, 8, &old),
			 0);
	assert_int_equal(old, 8);
	assert_int_equal(word, 1);
}

static void
atomics_on_memory_that_is_gone_or_read_only_are_refused(void **state)
{
	uint8_t *p = map_pages(1, PROT_READ);
	uint64_t old;

	NEEDS_KERNEL(); /* MADV_POPULATE_WRITE */
	assert_int_equal(self.space.ops->atomic(&self.space, SPACE_FETCH_ADD,
						va_of(p + 4), 1, 0, &old),
			 -EFAULT);
	assert_int_equal(self.space.ops->atomic(&self.space, SPACE_FETCH_ADD,
						va_of(p), 1, 0, &old),
			 -EFAULT);
	munmap(p, PAGE);
	assert_int_equal(self.space.ops->atomic(&self.space, SPACE_FETCH_ADD,
						va_of(p), 1, 0, &old),
			 -EFAULT);
}

struct writer {
	uint8_t byte, to[64];
	/* how often `to` had bytes that this thread had not written */
	int foreign;
};

static void *write_again_and_again(void *arg)
{
	struct writer *w = arg;
	struct space_vec v = {va_of(w->to), sizeof(w->to)};
	uint8_t from[sizeof(w->to)];

	memset(from, w->byte, sizeof(from));
	for (int i = 0; i < 20000; i++) {
		self.space.ops->write(&self.space, &v, 1, from);
		w->foreign += memcmp(w->to, from, sizeof(from)) != 0;
	}
	return NULL;
}

/* Where the kernel does not copy within a process, copies go through a file. */
static void the_writes_of_two_threads_do_not_mix(void **state)
{
	struct writer w[2] = {{.byte = 1}, {.byte = 2}};
	pthread_t thread[2];

	self.memfd = memfd_create("test", MFD_CLOEXEC);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
						write_again_and_again, &w[i]),
				 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(w[0].foreign + w[1].foreign, 0);
	close(self.memfd);
	self.memfd = -1;
}

/* The program may close the memfd, and open a file of its own with the same
 * number. */
static void a_file_that_has_taken_the_number_stays_as_it_is(void **state)
{
	uint8_t from[64], to[64] = {0}, back[64] = {0}, content[64];
	struct space_vec v = {va_of(to), sizeof(to)};
	int mine = memfd_create("mine", MFD_CLOEXEC), number;

	memset(from, 7, sizeof(from));
	assert_int_equal(write(mine, "program", 8), 8);
	self.memfd = fd_identity_note(memfd_create("test", MFD_CLOEXEC));
	number = self.memfd;
	assert_int_equal(dup2(mine, number), number);
	assert_int_equal(self.space.ops->write(&self.space, &v, 1, from), 0);
	assert_int_equal(self.space.ops->read(&self.space, &v, 1, back), 0);
	assert_memory_equal(to, from, sizeof(to));
	assert_memory_equal(back, from, sizeof(back));
	assert_int_not_equal(self.memfd, number);
	assert_int_equal(pread(number, content, sizeof(content), 0), 8);
	assert_memory_equal(content, "program", 8);
	fd_identity_close(self.memfd);
	self.memfd = -1;
	close(number);
	close(mine);
}

/* How many calls of process_vm_* still succeed; each copies at most SOME bytes.
 * Later calls fail as under a filter (seccomp).  Negative: no limit. */
static int calls_left = -1;

enum { SOME = 20 };

static bool copies_nothing; /* process_vm_* return 0 */

/* Copies the first SOME bytes, into or from the first range. */
static ssize_t copy_some(long call, pid_t pid, const struct iovec *own,
			 const struct iovec *target)
{
	struct iovec a = {own->iov_base, SOME}, b = {target->iov_base, SOME};

	if (copies_nothing)
		return 0;
	if (!calls_left) {
		errno = EPERM;
		return -1;
	}
	calls_left--;
	if (target->iov_len < SOME)
		a.iov_len = b.iov_len = target->iov_len;
	return syscall(call, pid, &a, 1, &b, 1, 0);
}

/* These functions replace those of the C library. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *own, unsigned long n,
			  const struct iovec *target, unsigned long m,
			  unsigned long flags)
{
	return calls_left < 0
		       ? syscall(SYS_process_vm_writev, pid, own, n, target, m,
				 flags)
		       : copy_some(SYS_process_vm_writev, pid, own, target);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *own, unsigned long n,
			 const struct iovec *target, unsigned long m,
			 unsigned long flags)
{
	return calls_left < 0
		       ? syscall(SYS_process_vm_readv, pid, own, n, target, m,
				 flags)
		       : copy_some(SYS_process_vm_readv, pid, own, target);
}

static void close_memfd(void)
{
	fd_identity_close(self.memfd);
	self.memfd = -1;
}

/* process_vm_* copy 0 bytes and set no errno.  An EPERM or ENOSYS from before
 * the copy does not mean that a filter (seccomp) refuses the calls. */
static void a_copy_of_no_bytes_makes_no_file(void **state)
{
	struct space_vec v = {0, 8};
	struct space_self fresh;
	uint64_t word = 0;

	space_self_init(&fresh);
	v.va = va_of(&word);
	calls_left = 1;
	copies_nothing = true;
	errno = EPERM;
	assert_int_equal(fresh.space.ops->write(&fresh.space, &v, 1, &word),
			 -EFAULT);
	errno = ENOSYS;
	assert_int_equal(fresh.space.ops->read(&fresh.space, &v, 1, &word),
			 -EFAULT);
	copies_nothing = false;
	calls_left = -1;
	assert_true(fresh.memfd < 0);
	space_self_fini(&fresh);
}

/* Another thread installs a filter after the first calls of a copy. */
static void a_copy_that_a_filter_ends_goes_on_by_the_file(void **state)
{
	for (int calls = 0; calls < 6; calls++) {
		uint8_t from[100], to[100] = {0}, back[100] = {0};
		struct space_vec v[2] = {{va_of(to), 33}, {va_of(to + 33), 67}};

		for (size_t i = 0; i < sizeof(from); i++)
			from[i] = (uint8_t)(i + 1);
		calls_left = calls;
		assert_int_equal(self.space.ops->write(&self.space, v, 2, from),
				 0);
		assert_memory_equal(to, from, sizeof(to));
		close_memfd();
		calls_left = calls;
		assert_int_equal(self.space.ops->read(&self.space, v, 2, back),
				 0);
		assert_memory_equal(back, from, sizeof(back));
		close_memfd();
	}
	calls_left = -1;
}

/* The program may have lowered RLIMIT_FSIZE, as programs do that protect
 * themselves. */
static void a_copy_by_the_file_ends_no_program(void **state)
{
	struct rlimit before, low;
	uint8_t from[64] = {1}, to[64] = {0};
	struct space_vec v = {va_of(to), sizeof(to)};

	getrlimit(RLIMIT_FSIZE, &before);
	low = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
	calls_left = 0;
	assert_int_equal(self.space.ops->write(&self.space, &v, 1, from),
			 -EFAULT);
	assert_int_equal(self.space.ops->read(&self.space, &v, 1, from),
			 -EFAULT);
	calls_left = -1;
	setrlimit(RLIMIT_FSIZE, &before);
	close_memfd();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_go_to_their_pieces_and_come_back),
		cmocka_unit_test(the_crc_of_a_write_is_that_of_its_bytes),
		cmocka_unit_test(unmapped_memory_is_refused_without_a_crash),
		cmocka_unit_test(memory_that_may_only_be_read_is_not_written),
		cmocka_unit_test(
			atomics_change_the_value_and_return_the_old_one),
		cmocka_unit_test(
			atomics_on_memory_that_is_gone_or_read_only_are_refused),
		GUARDED(bytes_go_to_their_pieces_and_come_back),
		GUARDED(the_crc_of_a_write_is_that_of_its_bytes),
		GUARDED(unmapped_memory_is_refused_without_a_crash),
		GUARDED(memory_that_may_only_be_read_is_not_written),
		cmocka_unit_test(a_copy_of_no_bytes_makes_no_file),
		cmocka_unit_test(a_copy_that_a_filter_ends_goes_on_by_the_file),
		cmocka_unit_test(a_copy_by_the_file_ends_no_program),
		cmocka_unit_test(the_writes_of_two_threads_do_not_mix),
		cmocka_unit_test(
			a_file_that_has_taken_the_number_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
