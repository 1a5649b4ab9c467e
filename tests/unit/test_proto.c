/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/proto: a receiver keeps only the descriptors that a valid message
 * names, and the connection of proto_look receives none. */
#include "brought.h"

#include "broker/proto.h"
#include "util/scm_rights.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sends a message of `size` bytes with n descriptors, and returns the result of
 * proto_receive. */
static int receive_with(struct brought *b, const struct proto *sent,
			size_t size, size_t n)
{
	int pair[2], fds[PROTO_FDS], err;
	struct proto m = {0};

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	brought_send(b, pair[0], sent, size, n);
	err = proto_receive(pair[1], &m, fds);
	for (int i = 0; i < PROTO_FDS; i++)
		assert_int_equal(fds[i], -1);
	close(pair[0]);
	close(pair[1]);
	return err;
}

/* A message of a SOCK_SEQPACKET socket may be empty, and may then bring
 * descriptors all the same. */
static void an_empty_message_leaves_no_descriptor(void **state)
{
	const struct proto none = {0};

	NEEDS_KERNEL(); /* an emulator keeps the descriptors */
	for (size_t n = 1; n <= PROTO_FDS + 2; n++) {
		struct brought b = brought_new();

		assert_int_equal(receive_with(&b, &none, 0, n), -EPIPE);
		assert_true(brought_are_closed(&b));
		brought_free(&b);
	}
}

static void a_short_message_leaves_no_descriptor(void **state)
{
	const struct proto m = {.magic = PROTO_MAGIC,
				.version = PROTO_VERSION,
				.brings = (1u << PROTO_FDS) - 1};

	for (size_t size = 1; size < sizeof(m); size++) {
		struct brought b = brought_new();

		assert_int_equal(receive_with(&b, &m, size, PROTO_FDS),
				 -EPROTO);
		assert_true(brought_are_closed(&b));
		brought_free(&b);
	}
}

static void descriptors_that_a_message_does_not_name_are_closed(void **state)
{
	const struct proto m = {.magic = PROTO_MAGIC, .version = PROTO_VERSION};
	struct brought b = brought_new();

	assert_int_equal(receive_with(&b, &m, sizeof(m), PROTO_FDS), 0);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
}

/* The soft limit on open files that another thread of the program sets while
 * proto_send has raised that limit; 0: no thread sets the limit. */
static rlim_t set_meanwhile;
static rlim_t full_at; /* sendmsg fails under this soft limit; 0: never */

/* Replaces the function of libc.  Under the soft limit full_at, refuses the
 * message, as the kernel does for a user with many descriptors in flight.
 * Under a higher limit, acts as another thread that sets the limit to
 * set_meanwhile. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	struct rlimit files = {0};

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (full_at && files.rlim_cur == full_at) {
		errno = ETOOMANYREFS;
		return -1;
	}
	if (full_at && set_meanwhile) {
		files.rlim_cur = set_meanwhile;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	}
	return syscall(SYS_sendmsg, fd, m, flags);
}

/* The soft limits full_at and set_meanwhile are just below the hard limit:
 * under a low soft limit the kernel itself would refuse the message if the
 * user's programs have many descriptors in flight. */
static void a_limit_that_the_program_sets_during_a_send_stays(void **state)
{
	const struct proto m = {.brings = PROTO_FD_SOCKET};
	struct rlimit was, files;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	for (rlim_t other = 0; other <= 1; other++) {
		const rlim_t own = was.rlim_max - 2;

		files = (struct rlimit){own, was.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
		set_meanwhile = other ? was.rlim_max - 1 : 0;
		full_at = own;
		assert_int_equal(proto_send(pair[0], &m, pair), 0);
		full_at = 0;
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
		assert_int_equal(files.rlim_cur, other ? set_meanwhile : own);
		assert_int_equal(files.rlim_max, was.rlim_max);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	close(pair[0]);
	close(pair[1]);
}

static int listener = -1; /* of a_look_receives_nothing; -1: not open */

/* Replaces the function of libc.  When proto_look asks which process listens,
 * accepts the connection, since this process is the one that listens, and tries
 * to send a message with a descriptor over the connection. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *bytes)
{
	const struct proto m = {.brings = PROTO_FD_SOCKET};
	int end;

	if (name == SO_PEERCRED && listener >= 0) {
		end = accept(listener, NULL, NULL);
		assert_true(end >= 0);
		assert_int_equal(proto_send(end, &m, &listener), -EPIPE);
		close(end);
	}
	return (int)syscall(SYS_getsockopt, fd, level, name, value, bytes);
}

/* If a message could wait in the connection, the close of the connection would
 * close the descriptors of the message, which may take long. */
static void a_look_receives_nothing(void **state)
{
	const unsigned version = 10000 + (unsigned)getpid();
	struct ucred who = {0};
	struct sockaddr_un a;
	socklen_t length = proto_address_of(version, &a);

	assert_int_equal(proto_look(version, &who), -ECONNREFUSED);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(proto_look(version, &who), 0);
	assert_int_equal(who.pid, getpid());
	assert_int_equal(who.uid, geteuid());
	close(listener);
	listener = -1;
}

static void a_broker_sends_descriptors_only_when_it_may(void **state)
{
	const struct proto m = {.brings = PROTO_FD_SOCKET};
	const unsigned version = 10000 + (unsigned)getpid();
	int called, end, at;
	struct sockaddr_un a;
	socklen_t bytes = proto_address_of(version, &a);

	if (!brought_can_be_refused())
		SKIP_FOR("this kernel is older than Linux 6.16");
	at = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(at, (struct sockaddr *)&a, bytes), 0);
	assert_int_equal(listen(at, 1), 0);
	called = proto_connect(version);
	end = accept(at, NULL, NULL);
	assert_int_equal(proto_send(end, &m, &at), -EPERM);
	scm_rights_let_bring(called, true);
	assert_int_equal(proto_send(end, &m, &at), 0);
	close(called);
	close(end);
	close(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_receives_nothing),
		cmocka_unit_test(a_broker_sends_descriptors_only_when_it_may),
		cmocka_unit_test(
			a_limit_that_the_program_sets_during_a_send_stays),
		cmocka_unit_test(an_empty_message_leaves_no_descriptor),
		cmocka_unit_test(a_short_message_leaves_no_descriptor),
		cmocka_unit_test(
			descriptors_that_a_message_does_not_name_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
