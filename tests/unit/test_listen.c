/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/listen: a listener is found, also where the kernel does not answer a
 * request of SOCK_DIAG. */
#include "test.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/listen.h"

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);

static bool is_silent; /* the kernel gets no request, and so does not answer */
static unsigned sends; /* how many requests were sent */
static unsigned endless; /* how many receives would have waited without end */

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	sends++;
	return is_silent ? (ssize_t)size : __real_send(fd, bytes, size, flags);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	endless += !(flags & MSG_DONTWAIT);
	return __real_recv(fd, bytes, size, flags | MSG_DONTWAIT);
}

/* Returns a socket of TCP that listens if `listens` is set. */
static int open_tcp(bool listens)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (listens)
		assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void check_listener(void)
{
	int fd = open_tcp(false);

	sends = endless = 0;
	assert_false(listen_is_ready(getpid(), 0));
	close(fd);
	fd = open_tcp(true);
	assert_true(listen_is_ready(getpid(), 0));
	close(fd);
	assert_true(sends);
	assert_int_equal(endless, 0);
}

static void a_process_that_listens_is_ready(void **state)
{
	is_silent = false;
	check_listener();
}

static void a_kernel_that_does_not_answer_is_not_awaited(void **state)
{
	is_silent = true;
	check_listener();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_listens_is_ready),
		cmocka_unit_test(a_kernel_that_does_not_answer_is_not_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
