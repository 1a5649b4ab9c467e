/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connection management by a broker, as the broker's clients see it.  The test
 * itself sends the messages of cmproto.h, and so decides their order.
 */
#include "cmtalk.h"

#include "broker/dial.h"

#include <sys/prctl.h>

#define CONNECTIONS 40

/* Connects to the broker, and returns the connection. */
static int connect_broker(void)
{
	char said[START_SENTENCE];
	int fd = -1;

	if (dial_open(&fd, NULL, NULL, said))
		fail_msg("%s", said);
	return fd;
}

/* Sends a request, and takes the next message, which must be its answer without
 * an error. */
static struct cmproto ask_server(int fd, struct cmproto m,
				 enum cmproto_kind kind, uint32_t id)
{
	post_message(fd, &m, kind, id);
	m = take_message(fd);
	assert_int_equal(m.kind, CMPROTO_DONE);
	assert_int_equal(m.err, 0);
	return m;
}

static struct cmproto listen_at(int fd, uint16_t *port)
{
	struct cmproto at = {.at.space = 0x106}, bound;

	memcpy(at.at.local, lo, 16);
	bound = ask_server(fd, at, CMPROTO_BIND, 0);
	*port = bound.at.local_port;
	ask_server(fd, (struct cmproto){.backlog = CONNECTIONS}, CMPROTO_LISTEN,
		   bound.new_id);
	return bound;
}

/* Connects `caller` to the port, where `called` accepts.  Returns the handle of
 * the caller. */
static uint32_t connect_to(int caller, int called, uint16_t port, uint32_t qpn)
{
	struct cmproto at = {.at.space = 0x106}, to = {.max_retries = 15}, m;
	uint32_t id;

	memcpy(at.at.local, lo, 16);
	id = ask_server(caller, at, CMPROTO_BIND, 0).new_id;
	memcpy(to.at.local, lo, 16);
	memcpy(to.at.peer, lo, 16);
	to.at.peer_port = port;
	to.timeout = TIMEOUT;
	to.qp.qpn = qpn;
	ask_server(caller, to, CMPROTO_CONNECT, id);
	m = take_event(called, CMPROTO_REQUEST);
	ask_server(called, (struct cmproto){.qp.qpn = qpn}, CMPROTO_ACCEPT,
		   m.new_id);
	take_event(caller, CMPROTO_RESPONSE);
	return id;
}

/* Starts a broker, which *keeper keeps alive, and two clients.  The caller has
 * connected to the called client, which has accepted.  Returns the caller's
 * handle. */
static uint32_t begin_call(struct client *keeper, int *called, int *caller)
{
	uint16_t port;

	open_or_fail(keeper);
	*called = connect_broker();
	*caller = connect_broker();
	listen_at(*called, &port);
	return connect_to(*caller, *called, port, 7);
}

/* Sends a request, and waits for the answer, but does not read it. */
static void leave_answer(int fd)
{
	struct pollfd answer = {.fd = fd, .events = POLLIN};
	struct cmproto at = {.at.space = 0x106};

	memcpy(at.at.local, lo, 16);
	post_message(fd, &at, CMPROTO_BIND, 0);
	assert_int_equal(poll(&answer, 1, TEST_WAIT_MS), 1);
}

/* If the client leaves a message unread, the broker's next receive fails with
 * ECONNRESET, and only later receives return the messages of the client. */
static void the_last_requests_of_a_closed_connection_are_served(void **state)
{
	for (int leaves = 0; leaves < 2; leaves++) {
		struct client keeper;
		int called, caller;
		uint32_t id = begin_call(&keeper, &called, &caller);

		if (leaves)
			leave_answer(caller);
		/* so that the broker finds the message and the close in one
		 * turn */
		stop_broker(broker_of(&keeper));
		post_message(caller, &(struct cmproto){0}, CMPROTO_ESTABLISH,
			     id);
		close(caller);
		kill(broker_of(&keeper), SIGCONT);
		take_event(called, CMPROTO_ESTABLISHED);
		take_event(called, CMPROTO_DISCONNECTED);
		close(called);
		end_broker(broker_of(&keeper));
		client_close(&keeper);
	}
}

static void answers_come_in_the_order_of_the_questions(void **state)
{
	struct cmproto at = {.at.space = 0x106}, m;
	struct client keeper;
	uint32_t first;
	int fd;

	open_or_fail(&keeper);
	fd = connect_broker();
	memcpy(at.at.local, lo, 16);
	stop_broker(broker_of(&keeper));
	post_message(fd, &at, CMPROTO_BIND, 0);
	first = at.serial;
	for (uint32_t i = 1; i < 8; i++)
		post_message(fd, &at, CMPROTO_BIND, 0);
	kill(broker_of(&keeper), SIGCONT);
	for (uint32_t i = 0; i < 8; i++) {
		m = take_message(fd);
		assert_int_equal(m.serial, first + i);
		assert_int_equal(m.err, 0);
	}
	close(fd);
	end_broker(broker_of(&keeper));
	client_close(&keeper);
}

/* Each object gets a new handle, of which 16 bits count the uses of the
 * object's slot.  No handle is 0, even after the count has wrapped. */
static void the_handle_of_an_object_is_never_0(void **state)
{
	struct cmproto at = {.at.space = 0x106};
	struct client keeper;
	int fd;

	open_or_fail(&keeper);
	fd = connect_broker();
	memcpy(at.at.local, lo, 16);
	for (uint32_t i = 0; i <= UINT16_MAX; i++) {
		struct cmproto bound = ask_server(fd, at, CMPROTO_BIND, 0);

		assert_int_not_equal(bound.new_id, 0);
		post_message(fd, &(struct cmproto){0}, CMPROTO_RELEASE,
			     bound.new_id);
	}
	close(fd);
	end_broker(broker_of(&keeper));
	client_close(&keeper);
}

/* Starts a process with a client, and takes the connection of that process,
 * which the test uses until the process is killed. */
static pid_t begin_client(int *connection)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .brings = PROTO_FD_SOCKET};
	int pair[2], fds[PROTO_FDS];
	struct pollfd p;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		fail();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct client c;
		int fd;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_or_fail(&c);
		fd = connect_broker();
		proto_send(pair[1], &m, &fd);
		close(fd);
		for (;;)
			pause();
	}
	p = (struct pollfd){pair[0], POLLIN, 0};
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	m.brings = 0;
	assert_int_equal(proto_receive(pair[0], &m, fds), 0);
	*connection = fds[0];
	close(pair[0]);
	close(pair[1]);
	return pid;
}

static void await_successor(struct client *c)
{
	pid_t dead = broker_of(c);
	struct client_news news;

	end_broker(dead);
	while (c->state != CLIENT_UP || broker_of(c) == dead)
		wait_turn(c, &news);
}

/* before: the caller's process dies while there is no broker.  Otherwise the
 * process dies when the successor has begun, but before the process has resumed
 * its connections. */
static void dies_without_a_broker(bool before)
{
	struct cmproto own[CONNECTIONS];
	struct client keeper;
	int called, caller;
	uint16_t port;
	pid_t pid;

	open_or_fail(&keeper);
	pid = begin_client(&caller);
	called = connect_broker();
	listen_at(called, &port);
	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		uint32_t id = connect_to(caller, called, port, 7 + i);

		ask_server(caller, (struct cmproto){0}, CMPROTO_ESTABLISH, id);
		own[i] = take_event(called, CMPROTO_ESTABLISHED);
	}
	/* so that the process does not find the next broker, and this broker
	 * does not notice the end of the connections */
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	stop_broker(broker_of(&keeper));
	close(caller);
	close(called);
	if (before)
		end_child(pid);
	await_successor(&keeper);
	called = connect_broker();
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		post_message(called, &own[i], CMPROTO_RESUME, 0);
	if (!before)
		end_child(pid);
	for (uint32_t done = 0, ended = 0; done + ended < 2 * CONNECTIONS;) {
		struct cmproto m = take_message(called);

		assert_int_equal(m.err, 0);
		done += m.kind == CMPROTO_DONE;
		ended += m.kind == CMPROTO_EVENT &&
			 m.event == CMPROTO_DISCONNECTED;
	}
	close(called);
	end_broker(broker_of(&keeper));
	client_close(&keeper);
}

static void
the_peer_of_a_client_that_dies_without_a_broker_learns_it(void **state)
{
	dies_without_a_broker(true);
}

static void
the_peer_of_a_client_that_dies_before_it_resumes_learns_it(void **state)
{
	dies_without_a_broker(false);
}

/* Both clients have resumed at the next broker, and neither has sent a socket
 * of a class to that broker. */
static void
the_peer_of_a_client_that_sent_no_socket_learns_its_end(void **state)
{
	struct client keeper;
	struct cmproto caller_is, called_is;
	struct pollfd p;
	int called, caller;
	uint32_t id = begin_call(&keeper, &called, &caller);

	caller_is =
		ask_server(caller, (struct cmproto){0}, CMPROTO_ESTABLISH, id);
	called_is = take_event(called, CMPROTO_ESTABLISHED);
	end_broker(broker_of(&keeper));
	client_close(&keeper);
	close(called);
	close(caller);
	called = connect_broker();
	caller = connect_broker();
	ask_server(called, called_is, CMPROTO_RESUME, 0);
	ask_server(caller, caller_is, CMPROTO_RESUME, 0);
	close(caller);
	p = (struct pollfd){called, POLLIN, 0};
	assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
	take_event(called, CMPROTO_DISCONNECTED);
	open_or_fail(&keeper);
	end_broker(broker_of(&keeper));
	client_close(&keeper);
	close(called);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_last_requests_of_a_closed_connection_are_served),
		cmocka_unit_test(answers_come_in_the_order_of_the_questions),
		cmocka_unit_test(the_handle_of_an_object_is_never_0),
		cmocka_unit_test(
			the_peer_of_a_client_that_dies_without_a_broker_learns_it),
		cmocka_unit_test(
			the_peer_of_a_client_that_dies_before_it_resumes_learns_it),
		cmocka_unit_test(
			the_peer_of_a_client_that_sent_no_socket_learns_its_end),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
