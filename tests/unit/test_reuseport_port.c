/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/reuseport_group, broker/other_version: a broker learns which process
 * has the port. */
#include "one_group.h"

#include "broker/other_version.h"
#include "util/monotonic.h"
#include "util/rlimit.h"

#include <dlfcn.h>
#include <pthread.h>

#define SOMEBODY 65534
/* a time after which an answer about the port is no longer kept */
#define FORGOTTEN_MS 250

/* Returns a socket of this type that listens at that abstract name.  Ends the
 * process, with a message, if the process cannot listen there. */
static int listen_at(const char *name, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", name);

	if (bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)n)) ||
	    listen(fd, 8)) {
		perror(name);
		_exit(1);
	}
	return fd;
}

/* Returns a socket that listens where a broker of that version would. */
static int listen_as(unsigned version)
{
	char name[32];

	snprintf(name, sizeof(name), "adverbd-%u", version);
	return listen_at(name, SOCK_SEQPACKET);
}

/* Starts a process of that user that listens where brokers of two versions
 * would.  Returns the PID when the process listens.  Sets *stop to a descriptor
 * whose close ends the process.  A test calls this function before the test
 * binds the port, so that the process inherits no socket of the port. */
static pid_t begin_listener(uid_t user, int *stop)
{
	int ready[2], hold[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready) | pipe(hold), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(hold[1]);
		if (user != geteuid() && setresuid(user, user, user)) {
			perror("setresuid");
			_exit(1);
		}
		listen_as(98);
		listen_as(99);
		close(ready[1]);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	close(hold[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	*stop = hold[1];
	return pid;
}

static void end_listener(pid_t pid, int stop)
{
	int status;

	close(stop);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Checks that a dead broker's group counts as the holder of the port, although
 * a process of `user` listens where brokers of other versions would. */
static void check_port_is_ours(uid_t user)
{
	const char *why = "";
	char text[256];
	int stop;
	pid_t pid = begin_listener(user, &stop);

	begin_group();
	assert_int_equal(reuseport_group_port(&why), REUSEPORT_PORT_OURS);
	assert_null(strstr(why, "another version"));
	assert_false(other_version_name(text, sizeof(text)));
	end_listener(pid, stop);
}

static void a_name_like_a_brokers_takes_no_port(void **state)
{
	check_port_is_ours(geteuid());
}

static void another_users_name_like_a_brokers_takes_no_port(void **state)
{
	if (!test_can_be(SOMEBODY))
		SKIP_FOR(ONE_USER);
	check_port_is_ours(SOMEBODY);
}

/* The number of names of each of two kinds: names with a version, and names
 * with a number that is no version.  More names would take long: for each name
 * with a version, a search may look at all descriptors of the process that
 * listens there. */
enum { NAMES = 100 };

/* Makes this process listen where brokers of many versions would, and at as
 * many names with numbers that are no version. */
static void listen_at_many_names(void)
{
	for (unsigned i = 0; i < NAMES; i++)
		listen_as(1000 + i);
	for (unsigned i = 0; i < NAMES; i++)
		listen_as(UINT16_MAX + i);
}

/* Any user can listen at many names like a broker's, so a search that stops
 * after some names could miss the broker. */
static void a_broker_of_another_version_is_found_among_many_names(void **state)
{
	struct rlimit files;
	int ready[2], hold[2], fd;
	char byte;
	pid_t pid;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_max < 2 * NAMES + 100)
		SKIP_FOR("too few files may be open here");
	assert_int_equal(pipe(ready) | pipe(hold), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		rlimit_raise(RLIMIT_NOFILE);
		close(hold[1]);
		listen_at_many_names();
		close(ready[1]);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	close(hold[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	begin_group();
	assert_false(other_version_has_port());
	/* The kernel lists the names in an order of its own: the name of one
	 * version could by chance come before all others. */
	for (unsigned version = 900; version < 908; version++) {
		fd = listen_as(version);
		assert_true(other_version_has_port());
		close(fd);
	}
	reuseport_group_close(&group);
	end_listener(pid, hold[1]);
}

/* how often connect was called */
static int connects;
static bool refuses_list;

/* Replaces libc's socket.  With refuses_list, acts like a kernel that lists no
 * sockets by netlink. */
int socket(int domain, int type, int protocol)
{
	if (refuses_list && domain == AF_NETLINK) {
		errno = EAFNOSUPPORT;
		return -1;
	}
	return (int)syscall(SYS_socket, domain, type, protocol);
}

/* Replaces libc's connect, and counts the calls. */
int connect(int fd, const struct sockaddr *to, socklen_t length)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);

	connects++;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "connect");
	return real(fd, to, length);
}

/* A name with a newline shows as two lines of /proc/net/unix.  A socket of
 * another type at a broker's name is no broker's. */
static void each_version_is_looked_at_once(void **state)
{
	static const char *const forged[] = {
		"x\n0: 2 0 10000 5 1 7 @adverbd-98",
		"y\n0: 2 0 10000 5 1 7 @adverbd-98",
		"z\n0: 2 0 10000 5 1 7 @adverbd-98"};
	int fds[TEST_COUNT(forged)], stream;

	begin_group();
	for (size_t i = 0; i < TEST_COUNT(forged); i++)
		fds[i] = listen_at(forged[i], SOCK_SEQPACKET);
	stream = listen_at("adverbd-99", SOCK_STREAM);
	connects = 0;
	assert_false(other_version_has_port());
	assert_int_equal(connects, 0); /* none of the sockets is a broker's */
	refuses_list = true;
	assert_false(other_version_has_port());
	refuses_list = false;
	assert_int_equal(connects, 1);
	for (size_t i = 0; i < TEST_COUNT(forged); i++)
		close(fds[i]);
	close(stream);
	reuseport_group_close(&group);
}

/* Sockets of two types may have one name. */
static void a_name_of_two_types_is_looked_at_once(void **state)
{
	static const bool refuses[] = {false, true};
	int stop, stream;
	pid_t pid = begin_listener(geteuid(), &stop);

	begin_group();
	stream = listen_at("adverbd-98", SOCK_STREAM);
	for (size_t i = 0; i < TEST_COUNT(refuses); i++) {
		refuses_list = refuses[i];
		connects = 0;
		assert_false(other_version_has_port());
		assert_int_equal(connects, 2); /* versions 98 and 99 */
	}
	refuses_list = false;
	close(stream);
	reuseport_group_close(&group);
	end_listener(pid, stop);
}

static void names_of_other_users_cost_no_connection(void **state)
{
	int stop;
	pid_t pid;

	if (!test_can_be(SOMEBODY))
		SKIP_FOR(ONE_USER);
	pid = begin_listener(SOMEBODY, &stop);
	begin_group();
	connects = 0;
	assert_false(other_version_has_port());
	assert_int_equal(connects, 0);
	refuses_list = true;
	assert_false(other_version_has_port());
	refuses_list = false;
	assert_int_equal(connects, 2);
	reuseport_group_close(&group);
	end_listener(pid, stop);
}

/* The broker accepts no connection, so the queue of its listener gets full. */
static void a_broker_with_a_full_queue_is_found(void **state)
{
	int fd = listen_as(97), waiting[16], n = 0;
	char text[256];

	begin_group();
	assert_int_equal(listen(fd, 0), 0);
	while ((waiting[n] = proto_connect(97)) >= 0)
		assert_true(++n < 16);
	assert_int_equal(waiting[n], -EAGAIN);
	assert_true(other_version_has_port());
	assert_true(other_version_name(text, sizeof(text)));
	assert_non_null(strstr(text, "(protocol 97)"));
	while (n)
		close(waiting[--n]);
	close(fd);
	reuseport_group_close(&group);
}

/* Replaces libc's poll.  While the test's clock is stopped, a poll that finds
 * nothing returns at once, and moves the test's clock on by its timeout. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	static int (*real)(struct pollfd *, nfds_t, int);
	int ready;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "poll");
	ready = real(fds, n, stopped_ms ? 0 : ms);
	if (stopped_ms && !ready && ms > 0)
		skipped_ms += ms;
	return ready;
}

/* A search of the descriptors of all processes may take longer than the answer
 * about the port is kept, so time passes only where the test says so. */
static void stop_clock(void)
{
	stopped_ms = (long)monotonic_ms() - skipped_ms;
}

static int start_clock(void **state)
{
	stopped_ms = 0;
	return end_group(state);
}

/* The broker is found although another process listens where other brokers
 * would. */
static void a_broker_of_another_version_has_the_port(void **state)
{
	const char *why = "";
	char text[256];
	int stop, fd;
	pid_t pid = begin_listener(geteuid(), &stop);

	begin_group();
	stop_clock();
	fd = listen_as(97);
	assert_int_equal(reuseport_group_port(&why), REUSEPORT_PORT_HELD);
	assert_non_null(strstr(why, "the broker of another version"));
	/* that broker does not answer, so the text ends without the words in
	 * parentheses that say when that broker ends */
	assert_true(other_version_name(text, sizeof(text)));
	assert_non_null(strstr(text, "(protocol 97)"));
	assert_string_equal(strstr(text, ": use one version"),
			    ": use one version, or end that broker's programs");
	/* each turn of the broker may ask, so the answer is kept */
	assert_int_equal(reuseport_group_port(&why), REUSEPORT_PORT_HELD);
	close(fd);
	assert_int_equal(reuseport_group_port(&why), REUSEPORT_PORT_HELD);
	skipped_ms += FORGOTTEN_MS;
	assert_int_equal(reuseport_group_port(&why), REUSEPORT_PORT_OURS);
	reuseport_group_close(&group);
	assert_int_equal(reuseport_group_port(&why), REUSEPORT_PORT_FREE);
	end_listener(pid, stop);
}

/* Stores why a broker of another namespace does not get the port there. */
static void *ask_elsewhere(void *text)
{
	struct sockaddr_in any = {.sin_family = AF_INET,
				  .sin_port = htons(4791)};
	int fd = unshare(CLONE_NEWNET) ? -1 : socket(AF_INET, SOCK_DGRAM, 0);
	const char *why = "";

	if (!bind(fd, (struct sockaddr *)&any, sizeof(any)) &&
	    reuseport_group_port(&why) == REUSEPORT_PORT_HELD)
		strcpy(text, why);
	close(fd);
	return NULL;
}

/* Each broker that is a thread of a program keeps its own answers. */
static void brokers_in_one_process_keep_no_answers_in_common(void **state)
{
	char text[256] = "";
	const char *why = "";
	pthread_t thread;
	int fd;

	begin_group();
	stop_clock();
	fd = listen_as(97);
	assert_int_equal(reuseport_group_port(&why), REUSEPORT_PORT_HELD);
	assert_non_null(strstr(why, "the broker of another version"));
	assert_int_equal(pthread_create(&thread, NULL, ask_elsewhere, text), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_non_null(strstr(text, "port 4791 is held by"));
	assert_null(strstr(text, "the broker of another version"));
	close(fd);
	reuseport_group_close(&group);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_name_like_a_brokers_takes_no_port,
					  end_group),
		cmocka_unit_test_teardown(
			another_users_name_like_a_brokers_takes_no_port,
			end_group),
		cmocka_unit_test_teardown(
			a_broker_of_another_version_has_the_port, start_clock),
		cmocka_unit_test_teardown(
			brokers_in_one_process_keep_no_answers_in_common,
			start_clock),
		cmocka_unit_test(each_version_is_looked_at_once),
		cmocka_unit_test(a_name_of_two_types_is_looked_at_once),
		cmocka_unit_test(names_of_other_users_cost_no_connection),
		cmocka_unit_test(a_broker_with_a_full_queue_is_found),
		cmocka_unit_test(
			a_broker_of_another_version_is_found_among_many_names),
	};

	return cmocka_run_group_tests(tests, setup_group, NULL);
}
