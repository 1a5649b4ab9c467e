/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/listen: a listener is found, also where the kernel does not answer a
 * request of SOCK_DIAG, or where a thread has forked the listener's process.  A
 * listener of adverb pair's caller is left out. */
#include "test.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/listen.h"

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags);

static bool is_silent; /* the kernel gets no request, and so does not answer */
static int dump_error; /* the result of each dump: 0 or -errno */
static unsigned sends; /* how many requests were sent */
static unsigned endless; /* how many receives would have waited without end */

ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	sends++;
	return is_silent ? (ssize_t)size : __real_send(fd, bytes, size, flags);
}

/* Writes the end of a dump, as a kernel without the module tcp_diag sends it.
 */
static ssize_t write_done(void *bytes, size_t size)
{
	struct {
		struct nlmsghdr h;
		int result;
	} done = {{.nlmsg_len = NLMSG_LENGTH(sizeof(int)),
		   .nlmsg_type = NLMSG_DONE,
		   .nlmsg_flags = NLM_F_MULTI},
		  dump_error};

	assert_true(size >= sizeof(done));
	memcpy(bytes, &done, sizeof(done));
	return sizeof(done);
}

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	endless += !(flags & MSG_DONTWAIT);
	if (dump_error)
		return write_done(bytes, size);
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

static void a_dump_that_fails_is_not_an_empty_list(void **state)
{
	is_silent = false;
	dump_error = -ENOENT;
	check_listener();
	dump_error = 0;
}

static void an_inherited_listener_does_not_count(void **state)
{
	int inherited = open_tcp(true), own;

	is_silent = false;
	listen_leave_out();
	assert_false(listen_is_ready(getpid(), 0));
	own = open_tcp(true);
	assert_true(listen_is_ready(getpid(), 0));
	close(own);
	close(inherited);
	listen_leave_out();
}

/* Forks a child that listens, writes its ID to the pipe @arg and sleeps, and
 * waits for the end of the child. */
static void *fork_listener(void *arg)
{
	int *news = arg;
	pid_t pid = fork(), self = getpid();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_tcp(true);
		_exit(write(news[1], &self, sizeof(self)) < 0 || pause());
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return NULL;
}

static void a_child_of_any_thread_is_found(void **state)
{
	int news[2];
	pthread_t thread;
	pid_t child;

	is_silent = false;
	assert_int_equal(pipe(news), 0);
	assert_int_equal(pthread_create(&thread, NULL, fork_listener, news), 0);
	assert_int_equal(read(news[0], &child, sizeof(child)), sizeof(child));
	assert_true(listen_is_ready(getpid(), 0));
	kill(child, SIGKILL);
	pthread_join(thread, NULL);
	assert_false(listen_is_ready(getpid(), 0));
	close(news[0]);
	close(news[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_listens_is_ready),
		cmocka_unit_test(a_kernel_that_does_not_answer_is_not_awaited),
		cmocka_unit_test(a_dump_that_fails_is_not_an_empty_list),
		cmocka_unit_test(an_inherited_listener_does_not_count),
		cmocka_unit_test(a_child_of_any_thread_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
