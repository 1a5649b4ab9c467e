/* SPDX-License-Identifier: BSD-2-Clause */
/* wire/sctp: the ports, the descriptors and the associations of a process.  A
 * child of fork has none of the associations. */
#include "brought.h"
#include "own_network.h"
#include "sctp_pairs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "util/fd_identity.h"
#include "wire/sctp_conn.h"

#define SERVICES     9899 /* the UDP port of all services of bind_two_services */
#define NO_NAMESPACE 77	  /* the exit status of a test without a namespace */

/* The value of each random byte; 0: the kernel gives the bytes. */
static uint8_t random_byte;

bool __real_random_fill(void *buf, size_t n, bool waits);
bool __wrap_random_fill(void *buf, size_t n, bool waits);

bool __wrap_random_fill(void *buf, size_t n, bool waits)
{
	if (!random_byte)
		return __real_random_fill(buf, n, waits);
	memset(buf, random_byte, n);
	return true;
}

/* Returns the lock that the library's own thread holds while it visits the
 * associations: the second member of a structure of release 0.9.5, after a
 * mutex.  NULL: the library does not export the structure. */
static pthread_mutex_t *lock_of_the_library(void)
{
	void *library = dlopen("libusrsctp.so.2", RTLD_NOW | RTLD_NOLOAD);
	pthread_mutex_t *locks = library ? dlsym(library, "sctp_it_ctl") : NULL;

	if (library)
		dlclose(library);
	return locks ? &locks[1] : NULL;
}

/* The library's thread may hold its lock during a fork, and the child lacks the
 * thread.  This test is the first: the end of an association of an earlier test
 * would need the lock, too. */
static void a_child_does_not_wait_for_the_librarys_thread(void **state)
{
	int status = -1, ends[2];
	pthread_mutex_t *held;
	struct pair p, q;
	pid_t child;

	NEEDS_LIBRARY();
	held = lock_of_the_library();
	if (!held)
		SKIP_FOR("libusrsctp2 does not show its lock");
	begin_pair(&p);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pthread_mutex_lock(held);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (!has_library())
			_exit(1);
		begin_pair(&q);
		_exit(0);
	}
	pthread_mutex_unlock(held);
	close(ends[1]);
	if (poll(&(struct pollfd){.fd = ends[0]}, 1, TEST_WAIT_MS) != 1)
		kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	end_pair(&p);
}

static void a_port_without_a_listener_refuses(void **state)
{
	struct sctp_news news;
	struct sockaddr_in6 to;
	int fd, caller;

	NEEDS_LIBRARY();
	to = loopback_address(0);
	fd = sctp_bind(&to, false);
	close(fd); /* nobody has the port now */
	caller = call_address(&to);
	await_events(caller, POLLIN);
	assert_int_equal(recv(caller, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.err, ECONNREFUSED);
	await_events(caller, POLLIN);
	assert_int_equal(recv(caller, &news, sizeof(news), 0), 0);
	close(caller);
}

/* Binds the address when the thread adverb-sctp has closed the socket there.
 * Returns the new socket, or -EADDRINUSE if the address stays in use for a
 * minute. */
static int bind_when_free(struct sockaddr_in6 *at)
{
	const struct timespec step = {.tv_nsec = 10000000};
	int fd = sctp_bind(at, false);

	for (int i = 0; i < 6000 && fd == -EADDRINUSE; i++) {
		nanosleep(&step, NULL);
		fd = sctp_bind(at, false);
	}
	return fd;
}

static void a_port_in_use_is_refused(void **state)
{
	struct sockaddr_in6 at;
	struct pair p;
	int fd;

	NEEDS_LIBRARY();
	begin_pair(&p);
	at = p.at;
	assert_int_equal(sctp_bind(&at, false), -EADDRINUSE);
	/* the connection of a listener that has gone leaves the port free */
	close(p.listener);
	fd = bind_when_free(&at);
	assert_true(fd >= 0);
	p.listener = sctp_listen(fd, &at, 8);
	assert_true(p.listener >= 0);
	end_pair(&p);
}

/* The child has none of the associations, and may make its own. */
static void a_child_of_fork_leaves_the_parents_alone(void **state)
{
	uint8_t m[100], got[100];
	struct pair p, q;
	int status = -1;
	pid_t child;

	NEEDS_LIBRARY();
	begin_pair(&p);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(p.caller);
		close(p.called);
		close(p.listener);
		if (!has_library())
			_exit(1);
		begin_pair(&q);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fill_message(m, sizeof(m), 1);
	assert_int_equal(send_fully(p.called, m, sizeof(m)), sizeof(m));
	await_events(p.caller, POLLIN);
	assert_int_equal(recv(p.caller, got, sizeof(got), 0), sizeof(got));
	end_pair(&p);
}

/* The child waits until the timers of its parent's associations would be due.
 */
static void a_child_that_has_not_begun_cannot_connect(void **state)
{
	const struct timespec wait = {.tv_nsec = 100000000};
	int status = -1;
	struct pair p;
	pid_t child;

	NEEDS_LIBRARY();
	begin_pair(&p);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		nanosleep(&wait, NULL);
		_exit(call_address(&p.at) != -ENOMEM);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	end_pair(&p);
}

/* Messages of a process arrive although the process ends at once. */
static void the_end_of_a_process_loses_nothing(void **state)
{
	uint8_t m[2000], got[2000];
	struct sctp_news news;
	int status = -1, called;
	struct pair p;
	pid_t child;

	NEEDS_LIBRARY();
	begin_pair(&p);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int fd;

		if (!has_library())
			_exit(1);
		fd = call_address(&p.at);
		await_events(fd, POLLIN);
		recv(fd, &news, sizeof(news), 0);
		for (uint32_t i = 0; i < 50; i++) {
			fill_message(m, sizeof(m), i);
			send_fully(fd, m, sizeof(m));
		}
		exit(0);
	}
	await_events(p.listener, POLLIN);
	called = sctp_accept(p.listener, &news);
	assert_true(called >= 0);
	for (uint32_t i = 0; i < 50; i++) {
		await_events(called, POLLIN);
		assert_int_equal(recv(called, got, sizeof(got), 0),
				 sizeof(got));
	}
	await_events(called, POLLIN);
	assert_int_equal(recv(called, got, sizeof(got), 0), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(called);
	end_pair(&p);
}

/* If a message announces no connection, sctp_accept closes all descriptors that
 * come with the message.  Otherwise sctp_accept returns one of the descriptors,
 * and closes the others. */
static void a_message_without_a_connection_leaves_no_descriptor(void **state)
{
	struct sctp_news news = {0}, got;

	for (size_t size = 0; size <= sizeof(news); size++) {
		struct brought b = brought_new();
		int pair[2], fd;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair),
				 0);
		brought_send(&b, pair[0], &news, size, 2);
		fd = sctp_accept(pair[1], &got);
		if (size == sizeof(news)) {
			assert_true(fd >= 0);
			close(fd);
		} else {
			assert_int_equal(fd, -ECONNABORTED);
		}
		assert_true(brought_are_closed(&b));
		brought_free(&b);
		close(pair[0]);
		close(pair[1]);
	}
}

/* Is a file with this inode number in an epoll set of this process? */
static bool is_watched(ino_t number)
{
	char path[64], line[256];
	bool found = false;
	const char *ino;

	for (int fd = 0; fd < 256; fd++) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f)) {
			ino = strncmp(line, "tfd:", 4) ? NULL
						       : strstr(line, "ino:");
			found |= ino && strtoul(ino + 4, NULL, 16) == number;
		}
		if (f)
			fclose(f);
	}
	return found;
}

/* Between sctp_unlisten and the next sctp_listen, no other socket can take the
 * port, and packets do not wake the thread adverb-sctp. */
static void a_listener_that_ends_may_keep_its_port(void **state)
{
	struct sctp_news news;
	struct stat socket;
	struct pair p;
	int fd;

	NEEDS_LIBRARY();
	p.at = loopback_address(0);
	fd = sctp_bind(&p.at, false);
	assert_int_equal(fstat(fd, &socket), 0);
	for (int i = 0; i < 2; i++) {
		p.listener = sctp_listen(fd, &p.at, 8);
		assert_true(p.listener >= 0);
		assert_true(is_watched(socket.st_ino));
		fd = sctp_unlisten(p.listener);
		assert_true(fd >= 0);
		assert_false(is_watched(socket.st_ino));
		assert_int_equal(sctp_bind(&p.at, false), -EADDRINUSE);
	}
	p.listener = sctp_listen(fd, &p.at, 8);
	assert_true(p.listener >= 0);
	p.caller = call_address(&p.at);
	await_events(p.caller, POLLIN);
	assert_int_equal(recv(p.caller, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.err, 0);
	await_events(p.listener, POLLIN);
	p.called = sctp_accept(p.listener, &news);
	assert_true(p.called >= 0);
	assert_int_equal(sctp_unlisten(dup(p.called)), -EBADF);
	end_pair(&p);
}

/* Binds and calls services in a child of fork, where one UDP port is that of
 * all services.  Returns the number of the first failed step, or 0; or
 * NO_NAMESPACE. */
static int bind_two_services(void)
{
	struct sockaddr_in6 at[2], again;
	struct sctp_options o = {.udp_port = SERVICES};
	int fd[2], caller;
	const char *why;

	if (!own_network_enter())
		return NO_NAMESPACE;
	if (sctp_start(&o, &why))
		return 1;
	for (int i = 0; i < 2; i++) {
		at[i] = loopback_address((uint16_t)(7000 + i));
		fd[i] = sctp_bind(&at[i], false);
		if (fd[i] < 0)
			return 2;
	}
	again = at[1];
	if (sctp_bind(&again, false) != -EADDRINUSE)
		return 3;
	close(fd[1]);
	fd[1] = sctp_bind(&again, false);
	for (int i = 0; i < 2; i++) {
		fd[i] = sctp_listen(fd[i], &at[i], 8);
		if (fd[i] < 0)
			return 4;
	}
	for (int i = 0; i < 2; i++) {
		struct sctp_news news;

		caller = call_address(&at[i]);
		await_events(caller, POLLIN);
		if (recv(caller, &news, sizeof(news), 0) != sizeof(news) ||
		    news.err)
			return 5;
		await_events(fd[i], POLLIN);
	}
	fd[0] = sctp_unlisten(fd[0]);
	again = at[0];
	if (fd[0] < 0 || sctp_bind(&again, false) != -EADDRINUSE)
		return 6;
	return 0;
}

/* In a child of fork: binds two sockets directly over IP, where adverb chooses
 * the ports, and then listens at both.  Returns the number of the first failed
 * step, or 0; or NO_NAMESPACE. */
static int listen_at_chosen_ports(void)
{
	struct sctp_options o = {.is_raw = true};
	struct sockaddr_in6 at[2], again;
	const char *why;
	int fd[2];

	if (!own_network_enter())
		return NO_NAMESPACE;
	if (sctp_start(&o, &why))
		return 1;
	random_byte = 0xff; /* the last port */
	for (int i = 0; i < 2; i++) {
		at[i] = loopback_address(0);
		fd[i] = sctp_bind(&at[i], false);
		if (fd[i] < 0)
			return 2;
	}
	again = at[1];
	if (sctp_bind(&again, false) != -EADDRINUSE)
		return 3;
	for (int i = 0; i < 2; i++)
		if (sctp_listen(fd[i], &at[i], 8) < 0)
			return 4;
	if (ntohs(at[0].sin6_port) != 0xffff)
		return 5;
	return ntohs(at[1].sin6_port) == 0xc000 ? 0 : 6;
}

/* Closes an association, and waits until its other end knows. */
static bool end_first(struct pair *p)
{
	uint8_t byte;

	close(p->caller);
	await_events(p->called, POLLIN | POLLRDHUP);
	if (recv(p->called, &byte, 1, 0))
		return false;
	close(p->called);
	close(p->listener);
	return true;
}

/* In a child of fork: makes two associations between the same addresses,
 * directly over IP, and ends the first.  Messages of the second must arrive
 * afterwards, even after the connections of the first have been freed.  Returns
 * as listen_at_chosen_ports does. */
static int outlive_another_association(void)
{
	struct sctp_options o = {.is_raw = true};
	uint8_t sent[64], got[64];
	struct pair first, second;
	const char *why;

	if (!own_network_enter())
		return NO_NAMESPACE;
	if (sctp_start(&o, &why))
		return 1;
	begin_pair(&first);
	begin_pair(&second);
	if (!end_first(&first))
		return 2;
	for (uint32_t i = 0; i < 100; i++) {
		fill_message(sent, sizeof(sent), i);
		if (send_fully(second.caller, sent, sizeof(sent)) !=
		    sizeof(sent))
			return 3;
		await_events(second.called, POLLIN);
		if (recv(second.called, got, sizeof(got), 0) != sizeof(got) ||
		    memcmp(sent, got, sizeof(got)) != 0)
			return 4;
		poll(NULL, 0, 10);
	}
	end_pair(&second);
	return 0;
}

static void expect_in_child(int (*calls)(void))
{
	int status = -1;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		_exit(calls());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		SKIP_FOR("no network namespace of our own");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void two_services_may_be_bound_before_one_listens(void **state)
{
	NEEDS_LIBRARY();
	expect_in_child(bind_two_services);
}

static void a_chosen_port_over_ip_is_free(void **state)
{
	NEEDS_LIBRARY();
	expect_in_child(listen_at_chosen_ports);
}

static void an_association_outlives_another_between_its_addresses(void **state)
{
	NEEDS_LIBRARY();
	expect_in_child(outlive_another_association);
}

/* The program may reuse the number of a descriptor.  A failed check is not
 * remembered as a successful one. */
static void a_file_of_the_program_is_no_connection(void **state)
{
	int fd = fd_identity_note(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	uint64_t checked = 0;
	int null;

	assert_true(sctp_conn_is_ours(fd, &checked));
	/* dup3 replaces the file at fd in one step: after a close, a file that
	 * the thread adverb-sctp opens could get the number */
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup3(null, fd, O_CLOEXEC), fd);
	close(null);
	checked = 0;
	for (int i = 0; i < 3; i++)
		assert_false(sctp_conn_is_ours(fd, &checked));
	fd_identity_close(fd);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_does_not_wait_for_the_librarys_thread),
		cmocka_unit_test(a_port_without_a_listener_refuses),
		cmocka_unit_test(a_port_in_use_is_refused),
		cmocka_unit_test(a_child_of_fork_leaves_the_parents_alone),
		cmocka_unit_test(a_child_that_has_not_begun_cannot_connect),
		cmocka_unit_test(the_end_of_a_process_loses_nothing),
		cmocka_unit_test(
			a_message_without_a_connection_leaves_no_descriptor),
		cmocka_unit_test(a_listener_that_ends_may_keep_its_port),
		cmocka_unit_test(two_services_may_be_bound_before_one_listens),
		cmocka_unit_test(
			an_association_outlives_another_between_its_addresses),
		cmocka_unit_test(a_chosen_port_over_ip_is_free),
		cmocka_unit_test(a_file_of_the_program_is_no_connection),
	};

	first_process = getpid();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
