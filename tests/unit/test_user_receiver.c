/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/user_receiver: the threads that receive from other users.  This
 * process has the client's end of each connection, and passes made-up user IDs
 * as those of the clients. */
#include "slow_close.h"
#include "test.h"

#include "broker/cmproto.h"
#include "broker/inside.h"
#include "broker/proto.h"
#include "broker/user.h"
#include "broker/user_receiver.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANNA	 1001
#define BERT	 1002

#define FIRST_FD 3 /* the first descriptor that is not a standard one */

static struct user_receivers all;

/* A connection: the client's end, and the broker's descriptors and object. */
struct end {
	int client, fd, in_fd;
	struct user_receiver_conn *conn;
};

/* Makes a connection of a user.  is_slow: a message waits there that brings the
 * only descriptor of a file that is slow to close. */
static struct end connect_slow(uid_t user, bool is_slow)
{
	const struct proto m = {.brings = PROTO_FD_SOCKET};
	struct end e;
	int pair[2];

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	if (is_slow) {
		int slow = slow_to_close();

		assert_int_equal(proto_send(pair[0], &m, &slow), 0);
		close(slow);
	}
	e.client = pair[0];
	e.fd = pair[1];
	assert_int_equal(
		user_receiver_take(&all, e.fd, user, &e.in_fd, &e.conn), 0);
	return e;
}

static struct end connect_as(uid_t user)
{
	return connect_slow(user, false);
}

static void close_end(struct end *e)
{
	close(e->in_fd);
	user_receiver_close(e->conn);
	close(e->client);
}

/* Receives the next message that the thread passes on.  Returns its length; 0:
 * the connection is over. */
static ssize_t next_message(const struct end *e, void *bytes, size_t size)
{
	struct pollfd p = {e->in_fd, POLLIN, 0};

	assert_int_equal(poll(&p, 1, -1), 1);
	return recv(e->in_fd, bytes, size, MSG_TRUNC);
}

static int start_receiver(void **state)
{
	user_receiver_interrupt_by_signal();
	user_receiver_init(&all, false);
	return all.spare ? 0 : -1;
}

static int stop_receiver(void **state)
{
	user_receiver_end(&all);
	return all.first || all.spare ? -1 : 0;
}

static void messages_come_in_order_with_their_lengths(void **state)
{
	static uint8_t bytes[CMPROTO_BYTES + 100];
	struct end e = connect_as(ANNA);
	const size_t length[] = {1, sizeof(struct proto), 7, CMPROTO_BYTES};

	for (size_t i = 0; i < 4; i++) {
		bytes[0] = (uint8_t)i;
		assert_int_equal(send(e.client, bytes, length[i], 0),
				 length[i]);
	}
	/* a message that is too long for every protocol stays too long */
	bytes[0] = 4;
	send(e.client, bytes, sizeof(bytes), 0);
	for (size_t i = 0; i < 5; i++) {
		ssize_t n = next_message(&e, bytes, sizeof(bytes));

		assert_int_equal(bytes[0], i);
		if (i < 4)
			assert_int_equal(n, length[i]);
		else
			assert_true(n > CMPROTO_BYTES);
	}
	close_end(&e);
}

static void more_messages_than_fit_wait(void **state)
{
	struct end e = connect_as(ANNA);
	uint32_t sent = 0, got = 0, number;

	/* until the connection, the pair and the thread's memory are full */
	while (send(e.client, &sent, sizeof(sent), MSG_DONTWAIT) > 0)
		sent++;
	while (got < sent) {
		assert_int_equal(next_message(&e, &number, sizeof(number)),
				 sizeof(number));
		assert_int_equal(number, got++);
	}
	close_end(&e);
}

static void the_end_of_a_client_follows_its_messages(void **state)
{
	struct end e = connect_as(ANNA);
	uint32_t number = 5;

	assert_int_equal(send(e.client, &number, sizeof(number), 0), 4);
	shutdown(e.client, SHUT_RDWR);
	assert_int_equal(next_message(&e, &number, sizeof(number)), 4);
	assert_int_equal(next_message(&e, &number, sizeof(number)), 0);
	close_end(&e);
}

/* Finishes a connection on which this many messages wait, as after the end of a
 * process whose child keeps the connection open.  Fails unless the messages and
 * then the end arrive. */
static void finish_after(uint32_t messages)
{
	struct end e = connect_as(ANNA);
	uint32_t number;

	for (number = 0; number < messages; number++)
		assert_int_equal(send(e.client, &number, sizeof(number), 0), 4);
	user_receiver_finish(e.conn);
	for (uint32_t i = 0; i < messages; i++) {
		assert_int_equal(next_message(&e, &number, sizeof(number)), 4);
		assert_int_equal(number, i);
	}
	assert_int_equal(next_message(&e, &number, sizeof(number)), 0);
	close_end(&e);
}

static void a_finished_connection_ends_after_its_messages(void **state)
{
	finish_after(0);
	finish_after(16); /* as many as the thread passes on in one turn */
	finish_after(100);
}

/* The child of a process that has ended may go on sending. */
static void a_finished_connection_ends_though_messages_come(void **state)
{
	struct end e = connect_as(ANNA);
	uint32_t number = 0;

	user_receiver_finish(e.conn);
	do
		send(e.client, &number, sizeof(number),
		     MSG_DONTWAIT | MSG_NOSIGNAL);
	while (recv(e.in_fd, &number, sizeof(number), MSG_DONTWAIT));
	close_end(&e);
}

/* If the broker is a thread of a program, a child that the program forks has
 * copies of the broker's sockets. */
static void a_copy_of_the_pair_does_not_hide_its_end(void **state)
{
	struct end e = connect_as(ANNA);
	pid_t child = fork();
	uint32_t number;

	assert_true(child >= 0);
	if (!child) {
		close(e.client);
		pause();
		_exit(0);
	}
	shutdown(e.client, SHUT_RDWR);
	assert_int_equal(next_message(&e, &number, sizeof(number)), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close_end(&e);
}

static void no_descriptor_comes_through(void **state)
{
	const struct proto m = {.magic = PROTO_MAGIC,
				.brings = PROTO_FD_SOCKET};
	struct end e = connect_as(ANNA);
	int fds[PROTO_FDS], pipe_fd[2];
	struct proto got = {0};
	char byte;

	assert_int_equal(pipe(pipe_fd), 0);
	assert_int_equal(proto_send(e.client, &m, &pipe_fd[1]), 0);
	close(pipe_fd[1]);
	assert_int_equal(read(pipe_fd[0], &byte, 1), 0); /* closed */
	assert_int_equal(recv(e.in_fd, &got, sizeof(got), MSG_PEEK),
			 sizeof(got));
	proto_receive(e.in_fd, &got, fds);
	for (int i = 0; i < PROTO_FDS; i++)
		assert_int_equal(fds[i], -1);
	close(pipe_fd[0]);
	close_end(&e);
}

static void a_slow_close_delays_only_its_user(void **state)
{
	struct end slow = connect_slow(ANNA, true), other = connect_as(BERT);
	struct end nobody = connect_slow(USER_NONE, true),
		   another = connect_as(USER_NONE);
	uint32_t number = 3;

	assert_int_equal(send(other.client, &number, sizeof(number), 0), 4);
	assert_int_equal(next_message(&other, &number, sizeof(number)), 4);
	assert_int_equal(send(another.client, &number, sizeof(number), 0), 4);
	assert_int_equal(next_message(&another, &number, sizeof(number)), 4);
	close_end(&slow);
	close_end(&other);
	close_end(&nobody);
	close_end(&another);
}

/* Takes turns until all threads have ended. */
static void await_all_ended(void)
{
	while (all.first)
		poll(NULL, 0, user_receiver_turn(&all, 1));
}

static void slow_closes_are_interrupted(void **state)
{
	for (int i = 0; i < 2 * USER_RECEIVER_UNCLOSED; i++) {
		struct end e = connect_slow(ANNA, true);

		close_end(&e);
	}
	while (!user_receiver_may_accept(&all))
		poll(NULL, 0, user_receiver_turn(&all, 1));
	await_all_ended();
	assert_non_null(all.spare);
}

static void too_many_closes_stop_the_broker_from_accepting(void **state)
{
	struct user_receivers mine;
	struct user_receiver_conn *c[USER_RECEIVER_UNCLOSED];
	int in_fd[USER_RECEIVER_UNCLOSED], pair[2];

	/* without threads, nothing is closed before the next turn */
	user_receiver_init(&mine, true);
	for (int i = 0; i < USER_RECEIVER_UNCLOSED; i++) {
		assert_true(user_receiver_may_accept(&mine));
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair),
				 0);
		/* users that cannot be told from each other count as one */
		assert_int_equal(user_receiver_take(&mine, pair[0],
						    i % 2 ? USER_NONE : ANNA,
						    &in_fd[i], &c[i]),
				 0);
		close(pair[1]);
		close(in_fd[i]);
	}
	for (int i = 0; i < USER_RECEIVER_UNCLOSED; i += 2)
		user_receiver_close(c[i]);
	for (int i = 1; i < USER_RECEIVER_UNCLOSED; i += 2)
		user_receiver_close(c[i]);
	assert_true(user_receiver_may_accept(&mine));
	for (int i = 0; i < USER_RECEIVER_UNCLOSED / 2; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair),
				 0);
		user_receiver_refuse(&mine, pair[0], USER_NONE, EUSERS, "full");
		close(pair[1]);
	}
	assert_false(user_receiver_may_accept(&mine));
	user_receiver_turn(&mine, -1);
	assert_true(user_receiver_may_accept(&mine));
	user_receiver_end(&mine);
}

static bool is_ahead; /* CLOCK_REALTIME is ahead by an hour */

/* Replaces the function of libc. */
int clock_gettime(clockid_t id, struct timespec *now)
{
	int err = (int)syscall(SYS_clock_gettime, id, now);

	if (is_ahead && id == CLOCK_REALTIME)
		now->tv_sec += 3600;
	return err;
}

/* During user_receiver_end, CLOCK_REALTIME is ahead for this process, but not
 * for the kernel, as if the clock were set back after this process has read it.
 * The thread closes two slow descriptors but gets only one signal, so
 * user_receiver_end waits until its time limit. */
static void a_clock_that_is_set_back_does_not_prolong_the_end(void **state)
{
	const struct proto m = {.brings = PROTO_FD_SOCKET};
	struct end e = connect_slow(ANNA, true);
	int slow = slow_to_close();

	assert_int_equal(proto_send(e.client, &m, &slow), 0);
	close(slow);
	alarm(TEST_WAIT_S); /* ends the test if the wait is longer */
	is_ahead = true;
	user_receiver_end(&all);
	is_ahead = false;
	alarm(0);
	assert_null(all.first);
	close(e.in_fd);
	close(e.client);
	user_receiver_init(&all, false);
}

/* pthread_create fails with EAGAIN */
static bool has_no_threads;

int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
		   void *(*body)(void *), void *arg)
{
	static int (*real)(pthread_t *, const pthread_attr_t *,
			   void *(*)(void *), void *);

	if (has_no_threads)
		return EAGAIN;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attr, body, arg);
}

/* The broker tells the client what the broker lacks. */
static void a_lack_has_its_own_error(void **state)
{
	struct rlimit before, none;
	struct user_receivers mine;
	struct user_receiver_conn *c;
	int pair[2], in_fd;

	has_no_threads = true;
	user_receiver_init(&mine, false);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(user_receiver_take(&mine, pair[0], ANNA, &in_fd, &c),
			 -EAGAIN);
	has_no_threads = false;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(user_receiver_take(&mine, pair[0], ANNA, &in_fd, &c),
			 -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	close(pair[0]);
	close(pair[1]);
	user_receiver_end(&mine);
}

static void a_refused_client_is_told_why(void **state)
{
	const struct proto hello = {.magic = PROTO_MAGIC,
				    .version = PROTO_VERSION,
				    .kind = PROTO_HELLO,
				    .serial = 9};
	struct proto answer = {0};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(proto_send(pair[0], &hello, NULL), 0);
	user_receiver_refuse(&all, pair[1], ANNA, EUSERS, "too many");
	assert_int_equal(recv(pair[0], &answer, sizeof(answer), 0),
			 sizeof(answer));
	assert_int_equal(answer.kind, PROTO_REFUSED);
	assert_int_equal(answer.value, EUSERS);
	assert_int_equal(answer.serial, 9);
	assert_string_equal(answer.why, "too many");
	assert_int_equal(recv(pair[0], &answer, sizeof(answer), 0), 0);
	/* a client that sends nothing is told a little later, or at once if
	 * several send nothing */
	close(pair[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	user_receiver_refuse(&all, pair[1], ANNA, EUSERS, "too many");
	assert_int_equal(recv(pair[0], &answer, sizeof(answer), 0),
			 sizeof(answer));
	assert_int_equal(answer.value, EUSERS);
	assert_int_equal(recv(pair[0], &answer, sizeof(answer), 0), 0);
	close(pair[0]);
	await_all_ended();
}

/* While the last thread ends, no descriptor is left for the next one. */
static void the_spare_thread_is_made_when_a_descriptor_is_left(void **state)
{
	struct end e = connect_as(ANNA);
	struct rlimit was, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){FIRST_FD, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	user_receiver_turn(&all, 1);
	assert_null(all.spare);
	close_end(&e);
	while (all.first)
		poll(NULL, 0, user_receiver_turn(&all, 1));
	assert_null(all.spare);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	user_receiver_turn(&all, -1);
	assert_non_null(all.spare);
}

/* A program in which the broker is a thread may lower its limit on open files
 * below the number of a user's connections. */
static void messages_come_despite_a_lowered_limit(void **state)
{
	enum { CONNECTIONS = 4 };
	struct end e[CONNECTIONS];
	struct rlimit was, low;
	uint32_t number;

	for (uint32_t i = 0; i < CONNECTIONS; i++)
		e[i] = connect_as(ANNA);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	low = (struct rlimit){2, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		assert_int_equal(send(e[i].client, &i, sizeof(i), 0), 4);
		assert_int_equal(next_message(&e[i], &number, sizeof(number)),
				 4);
		assert_int_equal(number, i);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		close_end(&e[i]);
}

/* Connections that are still open end when the broker ends. */
static void threads_end_with_connections_open(void **state)
{
	struct end e = connect_as(ANNA);
	char byte;

	close(e.in_fd);
	stop_receiver(NULL);
	assert_int_equal(recv(e.client, &byte, 1, 0), 0);
	close(e.client);
	start_receiver(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_come_in_order_with_their_lengths),
		cmocka_unit_test(more_messages_than_fit_wait),
		cmocka_unit_test(the_end_of_a_client_follows_its_messages),
		cmocka_unit_test(a_finished_connection_ends_after_its_messages),
		cmocka_unit_test(
			a_finished_connection_ends_though_messages_come),
		cmocka_unit_test(a_copy_of_the_pair_does_not_hide_its_end),
		cmocka_unit_test(no_descriptor_comes_through),
		cmocka_unit_test(a_slow_close_delays_only_its_user),
		cmocka_unit_test(slow_closes_are_interrupted),
		cmocka_unit_test(
			too_many_closes_stop_the_broker_from_accepting),
		cmocka_unit_test(a_lack_has_its_own_error),
		cmocka_unit_test(a_refused_client_is_told_why),
		cmocka_unit_test(
			the_spare_thread_is_made_when_a_descriptor_is_left),
		cmocka_unit_test(messages_come_despite_a_lowered_limit),
		cmocka_unit_test(threads_end_with_connections_open),
		cmocka_unit_test(
			a_clock_that_is_set_back_does_not_prolong_the_end),
	};

	return cmocka_run_group_tests(tests, start_receiver, stop_receiver);
}
