/* SPDX-License-Identifier: BSD-2-Clause */
/* util/fd_identity: a descriptor is closed only if its number still stands for
 * the file that was noted. */
#include "test.h"
#include "util/fd_identity.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_null(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int open_event(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int open_epoll(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

static int open_memory(void)
{
	return memfd_create("mark", MFD_CLOEXEC);
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int (*const kinds[])(void) = {open_event, open_epoll, open_memory,
				     open_socket};

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void a_descriptor_of_our_own_is_closed(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		int fd = fd_identity_note(kinds[i]());

		assert_true(fd_identity_holds(fd));
		fd_identity_close(fd);
		assert_false(is_open(fd));
		/* The next owner of the number need not mark its descriptor:
		 * the mark of the last owner is gone. */
		assert_true(fd_identity_holds(fd));
	}
}

/* A descriptor of each kind takes the number of a descriptor of each kind, also
 * of the same kind. */
static void a_descriptor_that_took_the_number_is_left_open(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(kinds); i++)
		for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
			int fd = fd_identity_note(kinds[i]()),
			    other = kinds[k]();

			assert_int_equal(dup2(other, fd), fd);
			assert_false(fd_identity_holds(fd));
			fd_identity_close(fd);
			assert_true(is_open(fd));
			/* the mark is gone */
			assert_true(fd_identity_holds(fd));
			close(fd);
			close(other);
		}
}

static void a_closed_descriptor_is_not_ours(void **state)
{
	int fd = fd_identity_note(open_event());

	close(fd);
	assert_false(fd_identity_holds(fd));
	fd_identity_close(fd);
	assert_false(fd_identity_holds(-1));
	fd_identity_close(-1);
	assert_int_equal(fd_identity_note(-5), -5);
}

static void a_caller_that_has_looked_closes_by_what_it_saw(void **state)
{
	int fd = fd_identity_note(open_event()), null = open_null();

	assert_int_equal(dup2(null, fd), fd);
	fd_identity_close_if(fd, fd_identity_holds(fd));
	assert_true(is_open(fd));
	/* the mark is gone */
	assert_true(fd_identity_holds(fd));
	fd_identity_close_if(fd, true);
	assert_false(is_open(fd));
	close(null);
}

/* The program may set the signal (F_SETSIG) of a descriptor that adverb shows
 * to the program. */
static void a_shown_descriptor_keeps_its_signal(void **state)
{
	int fd = fd_identity_note_shown(open_event()), null = open_null();

	assert_int_equal(fcntl(fd, F_GETSIG), 0);
	assert_true(fd_identity_holds(fd));
	assert_int_equal(dup2(null, fd), fd);
	assert_false(fd_identity_holds(fd));
	fd_identity_forget(fd);
	close(null);
	close(fd);
}

/* The program closes a descriptor of one owner, and another owner's file gets
 * the number.  note() moves that file to a number without an owner.  Otherwise
 * the first owner would close the file, and the second owner would take the
 * next file that the program opens at the number for its own. */
static void keep_number(int (*note)(int fd))
{
	for (size_t i = 0; i < TEST_COUNT(kinds); i++)
		for (size_t k = 0; k < TEST_COUNT(kinds); k++) {
			int first = note(kinds[i]()), above = note(kinds[i]()),
			    second;

			close(first);
			close(above);
			second = kinds[k]();
			assert_int_equal(second, first);
			second = note(second);
			assert_true(second > above);
			assert_int_equal(fcntl(second, F_GETFD), FD_CLOEXEC);
			fd_identity_close(first);
			fd_identity_close(above);
			assert_true(fd_identity_holds(second));
			fd_identity_close(second);
			assert_false(is_open(second));
		}
}

static void an_owner_keeps_a_number_that_the_program_closed(void **state)
{
	keep_number(fd_identity_note);
	keep_number(fd_identity_note_shown);
}

static void a_file_that_changes_its_owner_keeps_its_number(void **state)
{
	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		int fd = fd_identity_note(kinds[i]()), other;

		assert_int_equal(fd_identity_note(fd), fd);
		fd_identity_forget(fd);
		assert_true(is_open(fd));
		close(fd);
		other = kinds[i]();
		assert_int_equal(other, fd);
		assert_int_equal(fd_identity_note(other), fd);
		fd_identity_close(fd);
	}
}

static void a_number_that_is_not_noted_is_taken_to_be_ours(void **state)
{
	int fd = open_memory();

	assert_true(fd_identity_holds(fd));
	fd_identity_close(fd);
	assert_false(is_open(fd));
}

/* Notes a file of each kind while some standard descriptors are closed: fd is
 * closed if bit fd of `closed` is set.  Prints nothing meanwhile, since
 * standard error may be closed.  Returns whether no noted file has the number
 * of a standard descriptor, and each is held and close-on-exec. */
static bool is_moved(unsigned closed, int (*note)(int fd))
{
	int kept[3], fds[TEST_COUNT(kinds)], marked[TEST_COUNT(kinds)];
	bool is_good = true;

	for (int fd = 0; fd < 3; fd++)
		kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	for (int fd = 0; fd < 3; fd++)
		if (closed >> fd & 1)
			close(fd);
	for (size_t i = 0; i < TEST_COUNT(kinds); i++) {
		fds[i] = kinds[i]();
		marked[i] = note(fds[i]);
		is_good &= fds[i] > 2 ? marked[i] == fds[i] : marked[i] > 2;
		is_good &= fcntl(marked[i], F_GETFD) == FD_CLOEXEC;
		is_good &= fd_identity_holds(marked[i]);
	}
	for (int fd = 0; fd < 3; fd++)
		is_good &= is_open(fd) == !(closed >> fd & 1);
	for (size_t i = 0; i < TEST_COUNT(kinds); i++)
		fd_identity_close(marked[i]);
	for (int fd = 0; fd < 3; fd++) {
		dup2(kept[fd], fd);
		close(kept[fd]);
	}
	return is_good;
}

static void no_file_takes_the_place_of_a_standard_descriptor(void **state)
{
	for (unsigned closed = 0; closed < 1 << 3; closed++) {
		assert_true(is_moved(closed, fd_identity_note));
		assert_true(is_moved(closed, fd_identity_note_shown));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_descriptor_of_our_own_is_closed),
		cmocka_unit_test(
			a_descriptor_that_took_the_number_is_left_open),
		cmocka_unit_test(a_closed_descriptor_is_not_ours),
		cmocka_unit_test(
			a_caller_that_has_looked_closes_by_what_it_saw),
		cmocka_unit_test(a_shown_descriptor_keeps_its_signal),
		cmocka_unit_test(
			an_owner_keeps_a_number_that_the_program_closed),
		cmocka_unit_test(
			a_file_that_changes_its_owner_keeps_its_number),
		cmocka_unit_test(
			a_number_that_is_not_noted_is_taken_to_be_ours),
		cmocka_unit_test(
			no_file_takes_the_place_of_a_standard_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
