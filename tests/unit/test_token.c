/* SPDX-License-Identifier: BSD-2-Clause */
/* util/token: tokens in an eventfd, which the program may replace. */
#include "test.h"
#include "refused_syscall.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fd_identity.h"
#include "util/token.h"

/* The errno of preadv2(2); 0: the kernel executes the call. */
static int preadv2_err;

static int refused_syscall(long number, long first)
{
	return number == SYS_preadv2 ? preadv2_err : 0;
}

static bool is_readable(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};

	return poll(&p, 1, 0) == 1;
}

static void each_token_is_taken_back_once(void **state)
{
	int fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE));

	NEEDS_KERNEL();	     /* RWF_NOWAIT */
	token_take_back(fd); /* without a token the call does not wait */
	token_put(fd);
	token_put(fd);
	token_take_back(fd);
	assert_true(is_readable(fd));
	token_take_back(fd);
	assert_false(is_readable(fd));
	fd_identity_close(fd);
}

static void tokens_are_taken_back_with(int flags)
{
	int fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE | flags));
	int before = fcntl(fd, F_GETFL);

	token_take_back(fd); /* without a token the call does not wait */
	token_put_all(fd, 2);
	token_take_back(fd);
	assert_true(is_readable(fd));
	token_take_back(fd);
	assert_false(is_readable(fd));
	assert_int_equal(fcntl(fd, F_GETFL), before);
	assert_int_equal(token_reads_wait(fd), !flags);
	fd_identity_close(fd);
}

/* Before Linux 5.8 the kernel refuses RWF_NOWAIT for an eventfd. */
static void tokens_are_taken_back_without_rwf_nowait(void **state)
{
	preadv2_err = EOPNOTSUPP;
	tokens_are_taken_back_with(0);
	tokens_are_taken_back_with(EFD_NONBLOCK);
	preadv2_err = 0;
}

static void a_closed_descriptor_makes_no_reader_wait(void **state)
{
	errno = EAGAIN;
	assert_false(token_reads_wait(-1));
	assert_int_equal(errno, EAGAIN);
}

static void several_tokens_are_put_by_one_call(void **state)
{
	int fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE));

	NEEDS_KERNEL(); /* RWF_NOWAIT */
	token_put_all(fd, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(is_readable(fd));
		token_take_back(fd);
	}
	assert_false(is_readable(fd));
	fd_identity_close(fd);
}

static void a_file_of_the_program_is_left_alone(void **state)
{
	int fd = fd_identity_note_shown(eventfd(0, EFD_SEMAPHORE)), own[2];
	char text[16];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, own), 0);
	assert_int_equal(write(own[1], "abcdefgh", 8), 8);
	assert_int_equal(dup2(own[0], fd), fd);
	token_take_back(fd);
	assert_int_equal(recv(own[0], text, sizeof(text), MSG_DONTWAIT), 8);
	assert_int_equal(dup2(own[1], fd), fd);
	token_put(fd);
	assert_false(is_readable(own[0]));
	close(fd);
	close(own[0]);
	close(own[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_token_is_taken_back_once),
		cmocka_unit_test(tokens_are_taken_back_without_rwf_nowait),
		cmocka_unit_test(a_closed_descriptor_makes_no_reader_wait),
		cmocka_unit_test(several_tokens_are_put_by_one_call),
		cmocka_unit_test(a_file_of_the_program_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
