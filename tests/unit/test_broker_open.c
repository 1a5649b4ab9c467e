/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a client opens: the library starts adverbd, waits for a broker that does
 * not answer, and prints why a broker cannot be used.  This program runs in a
 * network namespace of its own, so that port 4791 and the broker's address are
 * free.  ADVERB_BROKER names adverbd.
 */
#include "brokers.h"
#include "own_pids.h"

#include "broker/client.h"
#include "broker/dial.h"
#include "broker/inside.h"
#include "broker/proto.h"
#include "broker/server.h"
#include "broker/steer.h"
#include "util/fd_identity.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20
#define NAP_MS 400

static int stops;      /* polls during which this process counts as stopped */
static int naps;       /* polls that end after NAP_MS without an event */
static pid_t silent;   /* the stopped broker; continues after these polls */
static bool is_doomed; /* the silent broker is killed instead */

/* Replaces libc's poll.  While `stops` or `naps` is not 0, only the test's
 * clock advances, and no event comes. */
int poll(struct pollfd *fds, nfds_t count, int ms)
{
	if (!stops && !naps)
		return ppoll(fds, count,
			     ms < 0 ? NULL
				    : &(struct timespec){ms / 1000,
							 ms % 1000 * 1000000l},
			     NULL);
	skipped_ms += stops ? 30000 : NAP_MS;
	if (stops ? --stops : --naps)
		return 0;
	if (is_doomed)
		end_broker(silent);
	else
		kill(silent, SIGCONT);
	return 0;
}

static int send_error; /* the errno with which sendmsg fails; 0: it succeeds */

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	errno = send_error;
	return send_error ? -1 : syscall(SYS_sendmsg, fd, m, flags);
}

/* Starts a broker and stops it (SIGSTOP).  The broker has no client. */
static void begin_silence(void)
{
	struct client first;

	open_or_fail(&first);
	silent = broker_of(&first);
	stop_broker(silent);
	client_close(&first);
}

/* how often note_late was called */
static int lates;

static void note_late(enum client_word word, const char *sentence)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "the broker adverbd, process %d, is stopped: waiting for it "
		 "as long as ADVERB_PATIENCE says",
		 (int)silent);
	assert_int_equal(word, CLIENT_SAYS_LATE);
	assert_string_equal(sentence, text);
	lates++;
}

static const struct client_want waits = {.arena_fd = -1,
					 .peer_wake_fd = -1,
					 .patience_ms = 60000,
					 .say = note_late};

static void a_broker_that_is_stopped_is_waited_for(void **state)
{
	const char *why = "";
	struct client c;

	begin_silence();
	naps = 50000 / NAP_MS;
	lates = 0;
	assert_int_equal(client_open(&c, &waits, &why), 0);
	assert_int_equal(naps, 0);
	assert_int_equal(lates, 1);
	assert_int_equal(broker_of(&c), silent);
	client_close(&c);
	end_broker(silent);
}

static void the_report_names_a_broker_that_never_answers(void **state)
{
	long began_ms = skipped_ms;
	const char *why = "";
	struct client c;
	char text[160];

	begin_silence();
	naps = 100000 / NAP_MS;
	assert_int_equal(client_open(&c, &waits, &why), -ETIMEDOUT);
	assert_true(skipped_ms - began_ms >= 60000);
	snprintf(text, sizeof(text),
		 "the broker adverbd (process %d, stopped) has not answered "
		 "for 60 s: let it run (kill -CONT, a debugger), or end it",
		 (int)silent);
	assert_string_equal(why, text);
	naps = 0;
	end_broker(silent);
}

static void the_report_says_why_a_message_cannot_be_sent(void **state)
{
	struct client first, c;
	const char *why = "";
	char text[160];
	pid_t pid;

	open_or_fail(&first);
	pid = broker_of(&first);
	send_error = ENOBUFS;
	assert_int_equal(open_client(&c, &why), -ENOBUFS);
	send_error = 0;
	snprintf(text, sizeof(text),
		 "this program cannot send a message to the broker adverbd, "
		 "process %d: %s; ",
		 (int)pid, strerror(ENOBUFS));
	assert_memory_equal(why, text, strlen(text));
	client_close(&first);
	end_broker(pid);
}

/* Puts a socket in place of the connection.  The socket's peer sends this
 * message (NULL: no message), and closes. */
static void play_message(struct client *c, const char *message)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_true(dup3(pair[0], c->unix_fd, O_CLOEXEC) >= 0);
	fd_identity_mark(c->unix_fd);
	close(pair[0]);
	if (message)
		assert_int_equal(send(pair[1], message, strlen(message), 0),
				 strlen(message));
	close(pair[1]);
}

/* After an invalid message the client itself ends the connection; the reason
 * must not be that the broker has closed the connection. */
static void an_invalid_message_is_no_end_of_the_broker(void **state)
{
	static const struct {
		const char *message;
		int err;
		const char *reason;
	} rows[] = {
		{"rubbish", -EPROTO, "gives an invalid answer"},
		{NULL, -EPIPE, "has closed the connection"},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		struct client_news news;
		struct client c;
		pid_t pid;

		open_or_fail(&c);
		pid = broker_of(&c);
		play_message(&c, rows[i].message);
		assert_false(client_turn(&c, &news));
		assert_int_equal(c.state, CLIENT_LOST);
		assert_int_equal(c.err, rows[i].err);
		assert_non_null(strstr(c.reason, rows[i].reason));
		client_close(&c);
		end_broker(pid);
	}
}

static void a_broker_that_dies_while_a_client_opens_is_replaced(void **state)
{
	const char *why = "";
	struct client c;

	begin_silence();
	naps = 5;
	is_doomed = true;
	assert_int_equal(client_open(&c, &waits, &why), 0);
	is_doomed = false;
	assert_int_not_equal(broker_of(&c), silent);
	silent = broker_of(&c);
	client_close(&c);
	end_broker(silent);
}

static void
a_client_that_is_stopped_while_it_opens_does_not_time_out(void **state)
{
	struct client first, c;

	open_or_fail(&first);
	/* A running broker could answer before the first poll. */
	silent = broker_of(&first);
	stop_broker(silent);
	stops = 3;
	open_or_fail(&c);
	assert_int_equal(stops, 0);
	client_close(&c);
	client_close(&first);
	end_broker(silent);
}

static void one_of_two_brokers_that_start_at_once_serves(void **state)
{
	for (int round = 0; round < ROUNDS; round++) {
		int go[2], out[2], hold[2];
		struct open_report r[2];

		if (pipe(go) || pipe(out) || pipe(hold))
			fail();
		for (int i = 0; i < 2; i++) {
			pid_t pid = fork();

			if (pid < 0)
				fail();
			if (pid)
				continue;
			close(go[1]);
			close(hold[1]);
			open_and_report(go[0], out[1], hold[0]);
		}
		close(go[1]); /* both children now open */
		for (int i = 0; i < 2; i++)
			assert_int_equal(read(out[0], &r[i], sizeof(r[i])),
					 sizeof(r[i]));
		assert_int_equal(r[0].err, 0);
		assert_int_equal(r[1].err, 0);
		assert_int_equal(r[0].broker, r[1].broker);
		assert_int_not_equal(r[0].class, r[1].class);
		close(hold[1]);
		while (wait(NULL) > 0)
			;
		end_broker(r[0].broker);
		close(go[0]);
		close(out[0]);
		close(out[1]);
		close(hold[0]);
	}
}

static void the_report_names_a_port_that_another_program_holds(void **state)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(4791)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	const char *why = "";
	struct client c;
	const char held[] = "port 4791 is held by ";

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(open_client(&c, &why), -EADDRINUSE);
	/* A broker in a user namespace may not see the process that holds the
	 * port. */
	assert_memory_equal(why, held, sizeof(held) - 1);
	close(fd);
	/* The broker serves once the port is free. */
	open_or_fail(&c);
	fd = broker_of(&c);
	client_close(&c);
	end_broker(fd);
}

static void malformed_requests_are_refused_and_survived(void **state)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION + 1,
			  .kind = PROTO_HELLO,
			  .serial = 5};
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct client c;
	pid_t pid;

	open_or_fail(&c);
	pid = broker_of(&c);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, length), 0);
	assert_int_equal(send(fd, "rubbish", 7, 0), 7);
	assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.kind, PROTO_REFUSED);
	assert_int_equal(m.value, EPROTO);
	m = (struct proto){.magic = PROTO_MAGIC,
			   .version = PROTO_VERSION + 1,
			   .kind = PROTO_HELLO,
			   .serial = 5};
	assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.value, EPROTONOSUPPORT);
	assert_string_equal(m.why,
			    "the broker is of another version of adverb");
	assert_int_equal(m.about, pid);
	assert_string_equal(m.release, ADVERB_VERSION);
	assert_int_equal(m.idle_s, 10);
	/* The message is shorter than the head that all versions share. */
	assert_int_equal(send(fd, &m, PROTO_HEAD - 1, 0), PROTO_HEAD - 1);
	assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.value, EPROTO);
	assert_int_equal(peer_state(&c, steer_qpn(c.class, 1)),
			 CLIENT_PEER_ALIVE);
	close(fd);
	client_close(&c);
	end_broker(pid);
}

/* Starts a broker of another version at the test's address.  The messages of
 * that version are longer, and only the head that all versions share is the
 * same. */
static pid_t begin_other_version(void)
{
	struct {
		struct proto m;
		char more[300];
	} word = {.m = {.magic = PROTO_MAGIC,
			.version = PROTO_VERSION + 1,
			.kind = PROTO_REFUSED,
			.value = EPROTONOSUPPORT,
			.brings = ~0u,
			.release = "9.8.7",
			.idle_s = 20}};
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	pid_t pid;

	assert_int_equal(bind(listener, (struct sockaddr *)&a, length), 0);
	pid = fork();
	if (pid < 0)
		fail();
	if (pid) {
		close(listener);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* SO_PEERCRED names the process that calls listen. */
	if (listen(listener, 8))
		_exit(1);
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		char question[400];

		if (recv(fd, question, sizeof(question), 0) > 0)
			send(fd, &word, sizeof(word), MSG_NOSIGNAL);
		close(fd);
	}
}

static void the_report_names_a_broker_of_another_version(void **state)
{
	pid_t pid = begin_other_version();
	char want[300];
	char said[START_SENTENCE];
	const char *why = "";
	struct client c;
	int fd, err;

	snprintf(want, sizeof(want),
		 "the broker adverbd, process %d of user %u is of adverb 9.8.7 "
		 "(protocol %d), this library of " ADVERB_VERSION
		 " (protocol %d): use one version, or end that broker's "
		 "programs (it ends 20 s after the last one)",
		 (int)pid, (unsigned)geteuid(), PROTO_VERSION + 1,
		 PROTO_VERSION);
	/* Wait until the child process listens. */
	while ((fd = proto_connect(PROTO_VERSION)) == -ECONNREFUSED)
		usleep(1000);
	close(fd);
	assert_int_equal(open_client(&c, &why), -EPROTONOSUPPORT);
	assert_string_equal(why, want);
	err = dial_open(&fd, NULL, NULL, said);
	assert_int_equal(err, -EPROTONOSUPPORT);
	assert_int_equal(fd, -1);
	assert_string_equal(said, want);
	end_broker(pid);
	waitpid(pid, NULL, 0);
}

static char said_late[128];

static void keep_late(enum client_word word, const char *sentence)
{
	assert_int_equal(word, CLIENT_SAYS_LATE);
	snprintf(said_late, sizeof(said_late), "%s", sentence);
}

/* Runs in a PID namespace of its own, in which the broker has no pid.  Returns
 * whether the message about the late broker names no pid. */
static bool lateness_is_of_no_number(void)
{
	const struct client_want want = {-1, -1, 20000, keep_late};
	const char *why = "";
	struct client c;

	naps = INT_MAX;
	return client_open(&c, &want, &why) == -ETIMEDOUT &&
	       !strcmp(said_late,
		       "the broker adverbd has not answered for 5 s: waiting "
		       "for it as long as ADVERB_PATIENCE says");
}

/* Runs in a PID namespace of its own, in which the broker has no pid.  Returns
 * whether the report calls the broker a process of another PID namespace. */
static bool report_is_of_no_number(void)
{
	static const char want[] =
		"the broker adverbd, a process of another PID namespace and of "
		"user ";
	char said[START_SENTENCE];
	int fd;

	return dial_open(&fd, NULL, NULL, said) == -EPROTONOSUPPORT &&
	       !strncmp(said, want, strlen(want));
}

static void the_report_names_a_broker_of_another_pid_namespace(void **state)
{
	pid_t broker = begin_other_version();
	int fd, status;

	while ((fd = proto_connect(PROTO_VERSION)) == -ECONNREFUSED)
		usleep(1000);
	close(fd);
	status = own_pids_run(report_is_of_no_number);
	end_broker(broker);
	waitpid(broker, NULL, 0);
	if (own_pids_lack(status))
		SKIP_FOR("no PID namespace can be made");
	assert_int_equal(status, 0);
}

static void a_late_broker_of_another_pid_namespace_has_no_number(void **state)
{
	int listener = listen_there(); /* never answers */
	int status = own_pids_run(lateness_is_of_no_number);

	close(listener);
	if (own_pids_lack(status))
		SKIP_FOR("no PID namespace can be made");
	assert_int_equal(status, 0);
}

static void the_broker_reports_its_process_user_and_release(void **state)
{
	struct dial_broker b;
	char said[START_SENTENCE];
	struct client c;
	pid_t pid;
	int fd;

	open_or_fail(&c);
	pid = broker_of(&c);
	assert_int_equal(dial_open(&fd, &b, NULL, said), 0);
	assert_int_equal(b.pid, pid);
	assert_int_equal(b.user, geteuid());
	assert_int_equal(b.idle_s, 10);
	assert_string_equal(b.release, ADVERB_VERSION);
	close(fd);
	client_close(&c);
	end_broker(pid);
}

static void a_thread_serves_if_no_process_can_be_started(void **state)
{
	struct client c[3];
	int status;
	pid_t pid = fork();

	if (!pid) {
		setenv("ADVERB_BROKER", "/nowhere/adverbd", 1);
		for (int i = 0; i < 3; i++) {
			open_or_fail(&c[i]);
			assert_int_equal(broker_of(&c[i]), getpid());
			send_to(steer_qpn(c[i].class, 9), AF_INET, "127.0.0.1");
			assert_int_equal(take_all(&c[i]), 1);
		}
		assert_int_equal(peer_state(&c[0], steer_qpn(c[1].class, 1)),
				 CLIENT_PEER_ALIVE);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The port is free again. */
	open_or_fail(&c[0]);
	pid = broker_of(&c[0]);
	client_close(&c[0]);
	end_broker(pid);
}

/* Linux has this option since 6.5; older headers lack it. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Shared by connect_and_end, its child, and sees_the_end_of_a_process. */
static struct {
	int listener, go[2], hold[2]; /* a byte in go ends connect_and_end; the
				       * end of file of hold ends its child */
} unseen;

/* Connects as a client.  A child of this process keeps the connection open;
 * this process ends when sees_the_end_of_a_process has accepted the connection.
 */
static _Noreturn void connect_and_end(void)
{
	int fd = proto_connect(PROTO_VERSION);
	char byte;

	close(unseen.listener);
	close(unseen.hold[1]);
	if (!fork())
		_exit(read(unseen.hold[0], &byte, 1) != 0);
	_exit(fd < 0 || read(unseen.go[0], &byte, 1) != 1);
}

static void fail_late(int sig)
{
	_exit(1);
}

/* Serves the client of connect_and_end, whose process has no pid in this PID
 * namespace. */
static bool sees_the_end_of_a_process(void)
{
	const struct server_config config = {.idle_ms = SERVER_NEVER};
	struct server *s = server_new(unseen.listener, &config);

	/* without the alarm server_turn could wait for ever; the first process
	 * of a namespace ignores SIGALRM unless it has a handler */
	signal(SIGALRM, fail_late);
	alarm(TEST_WAIT_S);
	server_turn(s);
	if (server_clients(s) != 1 || s->conn[0].pid ||
	    write(unseen.go[1], "", 1) != 1)
		return false;
	while (server_clients(s))
		server_turn(s);
	server_free(s);
	return true;
}

static bool tells_the_peers_process(void)
{
	int pair[2], fd = -1, err;
	socklen_t length = sizeof(fd);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	err = getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &length);
	close(pair[0]);
	close(pair[1]);
	if (!err)
		close(fd);
	return !err;
}

/* The broker may be in the PID namespace of a container, and the client
 * outside. */
static void the_end_of_a_process_that_is_not_visible_is_seen(void **state)
{
	pid_t parent = getpid(), pid;
	int status;

	if (!tells_the_peers_process())
		SKIP_FOR("the kernel opens no pidfd of a peer");
	unseen.listener = listen_there();
	assert_int_equal(pipe(unseen.go) | pipe(unseen.hold), 0);
	pid = fork();
	if (!pid) {
		test_begin_child(parent);
		connect_and_end();
	}
	status = own_pids_run(sees_the_end_of_a_process);
	close(unseen.listener);
	close(unseen.go[1]);
	close(unseen.hold[1]);
	waitpid(pid, NULL, 0);
	if (own_pids_lack(status))
		SKIP_FOR("no PID namespace can be made");
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_client_that_is_stopped_while_it_opens_does_not_time_out),
		cmocka_unit_test(a_broker_that_is_stopped_is_waited_for),
		cmocka_unit_test(the_report_names_a_broker_that_never_answers),
		cmocka_unit_test(the_report_says_why_a_message_cannot_be_sent),
		cmocka_unit_test(an_invalid_message_is_no_end_of_the_broker),
		cmocka_unit_test(
			a_broker_that_dies_while_a_client_opens_is_replaced),
		cmocka_unit_test(one_of_two_brokers_that_start_at_once_serves),
		cmocka_unit_test(
			the_report_names_a_port_that_another_program_holds),
		cmocka_unit_test(malformed_requests_are_refused_and_survived),
		cmocka_unit_test(the_report_names_a_broker_of_another_version),
		cmocka_unit_test(
			the_end_of_a_process_that_is_not_visible_is_seen),
		cmocka_unit_test(
			the_report_names_a_broker_of_another_pid_namespace),
		cmocka_unit_test(
			a_late_broker_of_another_pid_namespace_has_no_number),
		cmocka_unit_test(
			the_broker_reports_its_process_user_and_release),
		cmocka_unit_test(a_thread_serves_if_no_process_can_be_started),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
