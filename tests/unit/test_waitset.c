/* SPDX-License-Identifier: BSD-2-Clause */
/* host/waitset: how a thread waits when the kernel refuses to add descriptors
 * to an epoll set, when the program has closed descriptors, when a peer reads
 * the eventfd first, or while the process is stopped and continued; and how
 * often a wait checks the descriptors. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/progress.h"
#include "host/waitset.h"
#include "util/fd_identity.h"
#include "util/instrument.h"
#include "util/monotonic.h"

#define WAIT_NS 1000000000u
#define NAP_NS	5000000u

/* 1: the next call of epoll_ctl fails; 2: the call after it, and so on; 0: none
 * fails */
static int refused;

int __real_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	if (!refused || --refused)
		return __real_epoll_ctl(epoll, op, fd, event);
	errno = ENOSPC;
	return -1;
}

/* A hostile peer clears O_NONBLOCK of this eventfd, and reads it between the
 * poll and the read of the thread that waits; -1: no peer does so. */
static int robbed_fd = -1;

int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);

int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask)
{
	int count = __real_ppoll(fds, n, timeout, mask);
	uint64_t value;

	if (robbed_fd < 0)
		return count;
	assert_int_equal(fcntl(robbed_fd, F_SETFL, 0), 0);
	assert_int_equal(read(robbed_fd, &value, sizeof(value)), sizeof(value));
	return count;
}

static int looks; /* how often fstat(2) was called */

int __real_fstat64(int fd, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st);

int __wrap_fstat64(int fd, struct stat64 *st)
{
	looks++;
	return __real_fstat64(fd, st);
}

/* A thread that sleeps for each message checks the descriptors before each
 * wait. */
static void a_wait_looks_once_at_each_descriptor(void **state)
{
	static struct progress p;
	struct waitset in = {.fd = -1};

	p.wake.fd = fd_identity_note(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
	p.wake.awaited_fd = -1;
	p.wire.fd = p.wire.tx.fd = fd_identity_note(udp_unbound());
	waitset_open(&in, &p);
	looks = 0;
	assert_int_equal(waitset_wait(&in, &p, UINT64_MAX, POLLIN), 0);
	assert_int_equal(looks, 2);
	waitset_close(&in);
	fd_identity_close(p.wire.fd);
	fd_identity_close(p.wake.fd);
}

/* The first stream has come, so waitset_wait makes a new epoll set.  The kernel
 * refuses to add the eventfd, the UDP socket or the descriptor of the streams
 * to this set.  The wait still ends for the stream. */
static void a_refused_descriptor_ends_a_wait_nevertheless(void **state)
{
	static struct progress p;
	int streams = eventfd(1, EFD_CLOEXEC);

	p.wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p.wake.awaited_fd = -1;
	p.wire.fd = p.wire.tx.fd = udp_unbound();
	for (int i = 1; i <= 3; i++) {
		struct waitset in = {.fd = -1};

		shared_store(&p.streams.waits_on, 0);
		waitset_open(&in, &p);
		shared_store(&p.streams.waits_on, (uint32_t)streams + 1);
		refused = i;
		assert_int_equal(
			waitset_wait(&in, &p, monotonic_ns() + WAIT_NS, POLLIN),
			0);
		assert_false(in.has_timed_out);
		waitset_close(&in);
	}
	close(p.wire.fd);
	close(p.wake.fd);
	close(streams);
}

/* While the epoll set is made, the descriptor of the streams is closed, and its
 * number belongs to another file already.  epoll_ctl(2) refuses that file, but
 * epoll stays in use. */
static void a_reused_number_does_not_end_the_use_of_epoll(void **state)
{
	static struct progress p;
	int file = memfd_create("file", MFD_CLOEXEC), lowest;

	p.wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p.wake.awaited_fd = -1;
	p.wire.fd = p.wire.tx.fd = udp_unbound();
	lowest = eventfd(0, EFD_CLOEXEC);
	close(lowest);
	for (int i = 0; i < 3; i++) {
		/* EPERM, EEXIST, and EINVAL for the epoll set itself */
		const int numbers[] = {file, p.wake.fd, lowest};
		struct waitset in = {.fd = -1};

		shared_store(&p.streams.waits_on, (uint32_t)numbers[i] + 1);
		waitset_open(&in, &p);
		if (!instrument_by_valgrind())
			assert_false(in.is_refused);
		waitset_close(&in);
	}
	close(p.wire.fd);
	close(p.wake.fd);
	close(file);
}

/* poll(2) returns at once for a descriptor that the program has closed. */
static void a_nap_without_its_descriptor_is_no_busy_loop(void **state)
{
	static struct progress p;
	struct waitset in = {.fd = -1};
	uint64_t until;

	p.wake.fd = fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	p.wake.awaited_fd = -1;
	p.wire.fd = p.wire.tx.fd = udp_unbound();
	waitset_open(&in, &p);
	close(p.wake.fd);
	until = monotonic_ns() + NAP_NS;
	assert_int_equal(waitset_nap(&in, &p, until), 0);
	assert_true(monotonic_ns() >= until);
	waitset_close(&in);
	close(p.wire.fd);
}

/* The child naps.  If its read of the eventfd waited, the child would end only
 * by the alarm. */
static void a_peer_that_reads_the_eventfd_first_blocks_no_nap(void **state)
{
	static struct progress p;
	struct waitset in = {.fd = -1};
	int status;
	pid_t child;

	p.wake.fd = fd_identity_note(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
	p.wake.awaited_fd = -1;
	p.wire.fd = p.wire.tx.fd = udp_unbound();
	waitset_open(&in, &p);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		alarm(TEST_WAIT_S);
		robbed_fd = p.wake.fd;
		_exit(waitset_nap(&in, &p, monotonic_ns() + NAP_NS));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	waitset_close(&in);
	fd_identity_close(p.wake.fd);
	close(p.wire.fd);
}

/* Waits until /proc/PID/stat shows this state of the process.  Ends the program
 * if the file cannot be read. */
static void await_state(pid_t process, char state)
{
	char path[64], text[512], *found;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
	do {
		FILE *f = fopen(path, "r");

		if (!f || !fgets(text, sizeof(text), f))
			_exit(1);
		fclose(f);
		found = strrchr(text, ')');
		if (!found)
			_exit(1);
	} while (found[2] != state);
}

/* Once the process `waiter` waits: stops and continues it, and then ends its
 * wait by an event of the eventfd. */
static _Noreturn void stop_waiter(pid_t waiter, int fd)
{
	const uint64_t one = 1;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	await_state(waiter, 'S');
	kill(waiter, SIGSTOP);
	await_state(waiter, 'T');
	kill(waiter, SIGCONT);
	_exit(write(fd, &one, sizeof(one)) != sizeof(one));
}

/* With a mask the wait is by ppoll(2), which goes on after a stop.
 * epoll_pwait2(2) would return EINTR then, as if a handler had run. */
static void a_stop_ends_no_wait_that_a_handler_may_end(void **state)
{
	static struct progress p;
	pid_t waiter = getpid(), child;
	sigset_t none;
	struct waitset in = {.fd = -1, .mask = &none};
	int status;

	sigemptyset(&none);
	p.wake.fd = fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	p.wake.awaited_fd = -1;
	p.wire.fd = p.wire.tx.fd = udp_unbound();
	waitset_open(&in, &p);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		stop_waiter(waiter, p.wake.fd);
	assert_int_equal(waitset_wait(&in, &p, UINT64_MAX, POLLIN), 0);
	assert_false(in.has_timed_out);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	waitset_close(&in);
	fd_identity_close(p.wake.fd);
	close(p.wire.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_looks_once_at_each_descriptor),
		cmocka_unit_test(a_refused_descriptor_ends_a_wait_nevertheless),
		cmocka_unit_test(a_reused_number_does_not_end_the_use_of_epoll),
		cmocka_unit_test(a_nap_without_its_descriptor_is_no_busy_loop),
		cmocka_unit_test(
			a_peer_that_reads_the_eventfd_first_blocks_no_nap),
		cmocka_unit_test(a_stop_ends_no_wait_that_a_handler_may_end),
	};

	return cmocka_run_group_tests_name("waitset", tests, NULL, NULL);
}
