/* SPDX-License-Identifier: BSD-2-Clause */
/* host/broker_link: a process asks the broker about other processes, also when
 * the broker does not read, or refuses the process. */
#include "brokers.h"
#include "own_pids.h"
#include "said_by.h"

#include "engine/inside.h"
#include "host/host.h"
#include "host/broker_link.h"
#include "host/source_port.h"

#include <pthread.h>

#define PATIENCE_NS 120000000000u
#define ANSWERED_NS 1000000000u
#define REST_NS	    (STEER_USER_REST_MS * 1000000ull)

/* While the broker is stopped, its socket is full and a question cannot be
 * sent; the question is sent when the broker reads again. */
static void a_question_without_room_is_asked_later(void **state)
{
	struct engine_event e = {.qpn = 7, .peer.ip = {[15] = 1}};
	const struct device *device;
	int fd = broker_link_socket(-1, -1, PATIENCE_NS);
	struct pollfd p = {broker_link_fd(), POLLIN, 0};
	/* other: for broker_of, and as an element of both[] */
	struct client other, both[2] = {0};
	pid_t broker;
	uint32_t nobody;

	assert_true(fd >= 0);
	open_or_fail(&other);
	both[0] = other;
	both[1].class = broker_link_class(broker_link_qpn(5));
	nobody = steer_qpn(unowned_class(both, 2), 5);
	e.dest_qpn = nobody;
	broker = broker_of(&other);
	assert_int_equal(device_list(&device), 1);
	stop_broker(broker);
	while (broker_link_ask_arena(steer_class(nobody)))
		;
	broker_link_ask(NULL, &e, 0);
	kill(broker, SIGCONT);
	while (!broker_link_has_dead()) {
		assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
		broker_link_turn(NULL, 0);
	}
	client_close(&other);
	broker_link_close();
	close(fd);
	end_broker(broker);
}

/* Returns a socket that another user owns, bound to the port *port, which the
 * function chooses. */
static int port_of_another(uint16_t *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
	*port = ntohs(at.sin_port);
	/* If this process is not root, it is in a user namespace that maps no
	 * user.  Then the owner has the overflow user ID, which may stand for
	 * another user. */
	if (!geteuid())
		assert_int_equal(fchown(fd, 65534, (gid_t)-1), 0);
	return fd;
}

/* Calls broker_link_turn until this process connects to the test's listener,
 * and then answers with PROTO_REFUSED and err. */
static void refuse_there(struct engine *engine, int listener, int err,
			 uint64_t now_ns)
{
	struct proto word = {.magic = PROTO_MAGIC,
			     .version = PROTO_VERSION,
			     .kind = PROTO_REFUSED,
			     .value = (uint32_t)err,
			     .why = "the test refuses"};
	struct pollfd p = {listener, POLLIN, 0};
	int fd;

	while (!poll(&p, 1, 0)) {
		broker_link_woken(); /* as the thread that waits would */
		broker_link_turn(engine, now_ns);
	}
	fd = accept_client(listener);
	assert_int_equal(proto_send(fd, &word, NULL), 0);
	broker_link_woken();
	broker_link_turn(engine, now_ns);
	close(fd);
}

static int refusal; /* the errno by which the test refuses be_refused */

/* The broker dies, and its successor refuses this process. */
static void be_refused(void)
{
	struct engine engine = {0};
	struct client other; /* for broker_of */

	assert_true(broker_link_socket(-1, -1, PATIENCE_NS) >= 0);
	open_or_fail(&other);
	end_broker(broker_of(&other));
	client_close(&other);
	refuse_there(&engine, listen_there(), refusal, 1);
}

/* ESTALE: the successor does not know this process's class, so the class may be
 * another process's. */
static void a_refusal_says_whether_connections_continue(void **state)
{
	static const struct {
		int err;
		const char *words;
	} cases[] = {
		{EUSERS, "refuses; open connections continue"},
		{ESTALE, "refuses; packets may no longer reach this process"},
	};

	for (size_t i = 0; i < TEST_COUNT(cases); i++) {
		char text[1024];

		refusal = cases[i].err;
		said_by(be_refused, text, sizeof(text));
		if (!strstr(text, cases[i].words))
			fail_msg("%d: %s", cases[i].err, text);
	}
}

/* Stops the broker, and asks at now_ns whether d comes from a port of the user
 * of the process with this QPN.  Sets d->from.port to a port of another user.
 * Returns that port's socket. */
static int ask_about_port(struct engine *engine, struct engine_dgram *d,
			  uint32_t qpn, pid_t broker, uint64_t now_ns)
{
	int port = port_of_another(&d->from.port);

	source_port_forget();
	assert_int_equal(
		engine_sources_init(&engine->sources, true, steer_class), 0);
	stop_broker(broker);
	engine_sources_look(&engine->sources, d, qpn, now_ns);
	source_port_find(engine, now_ns);
	assert_true(source_port_is_asking());
	return port;
}

/* The broker dies before it answers, and its successor refuses this process: no
 * question waits for an answer any more, so nothing is due until the next
 * attempt. */
static void a_refusal_ends_the_questions_about_ports(void **state)
{
	struct engine_dgram d = {.from.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1},
				 .local = true};
	struct engine engine = {0};
	struct client other; /* for broker_of, and for its class */
	int fd = broker_link_socket(-1, -1, PATIENCE_NS), port;
	int listener;
	pid_t broker;

	assert_true(fd >= 0);
	open_or_fail(&other);
	broker = broker_of(&other);
	port = ask_about_port(&engine, &d, steer_qpn(other.class, 5), broker,
			      1);
	end_broker(broker);
	listener = listen_there();
	refuse_there(&engine, listener, EUSERS, 1);
	assert_false(source_port_is_asking());
	close(listener);
	engine_sources_fini(&engine.sources);
	client_close(&other);
	broker_link_close();
	close(port);
	close(fd);
}

/* Asks whether d comes from a port of the peer's user, without a broker. */
static bool is_believed(struct engine *engine, const struct engine_dgram *d,
			uint32_t qpn, uint64_t now_ns)
{
	engine_sources_forget(&engine->sources);
	engine_sources_look(&engine->sources, d, qpn, now_ns);
	source_port_find(engine, now_ns);
	assert_false(source_port_is_asking());
	return engine_sources_look(&engine->sources, d, qpn, now_ns).word ==
	       SOURCE_IS_PEERS;
}

/* Gives the engine the answer that the peer's user owns a port.  The broker
 * dies later_ns after that answer.  Returns whether the answer still holds
 * then. */
static bool outlasts_broker(uint64_t later_ns)
{
	struct engine_dgram d = {.from.ip = {[10] = 0xff, 0xff, 127, 0, 0, 1},
				 .local = true};
	const uint64_t end_ns = ANSWERED_NS + later_ns;
	struct client_news answer = {.is_peers = true};
	struct engine engine = {0};
	struct client other;
	int fd = broker_link_socket(-1, -1, PATIENCE_NS), port, listener;
	uint32_t qpn;
	pid_t broker;
	bool first;

	assert_true(fd >= 0);
	open_or_fail(&other);
	broker = broker_of(&other);
	qpn = steer_qpn(other.class, 5);
	port = ask_about_port(&engine, &d, qpn, broker, ANSWERED_NS);
	answer.class = broker_link_class(qpn);
	answer.from = d.from;
	source_port_answered(&engine, &answer, ANSWERED_NS);
	end_broker(broker);
	listener = listen_there();
	refuse_there(&engine, listener, EUSERS, end_ns);
	first = is_believed(&engine, &d, qpn, end_ns);
	/* without a broker, no class changes its owner */
	assert_int_equal(is_believed(&engine, &d, qpn, end_ns + 10 * REST_NS),
			 first);
	/* from source_port_ask_again to source_port_give_up there is a new
	 * broker, which may give the class to another user's process */
	source_port_ask_again();
	source_port_give_up(&engine, end_ns + 10 * REST_NS);
	assert_false(is_believed(&engine, &d, qpn, end_ns + 10 * REST_NS));
	close(listener);
	engine_sources_fini(&engine.sources);
	client_close(&other);
	broker_link_close();
	close(port);
	close(fd);
	return first;
}

static void an_answer_holds_while_its_class_has_its_owner(void **state)
{
	assert_true(outlasts_broker(1));
	assert_true(outlasts_broker(REST_NS - 1));
	assert_false(outlasts_broker(REST_NS));
}

/* The broker reports the death of a peer and then dies itself, and its
 * successor refuses this process.  The report still holds: the QP must not wait
 * until the engine's patience ends. */
static void a_death_is_known_after_the_broker_has_died(void **state)
{
	struct engine_event e = {.qpn = 7, .peer.ip = {[15] = 1}};
	struct engine engine = {0};
	int fd = broker_link_socket(-1, -1, PATIENCE_NS), listener;
	struct pollfd p = {broker_link_fd(), POLLIN, 0};
	/* other: for broker_of, and as an element of both[] */
	struct client other, both[2] = {0};
	uint32_t changes;
	pid_t broker;

	assert_true(fd >= 0);
	open_or_fail(&other);
	broker = broker_of(&other);
	both[0] = other;
	both[1].class = broker_link_class(broker_link_qpn(5));
	e.dest_qpn = steer_qpn(unowned_class(both, 2), 5);
	broker_link_ask(NULL, &e, 0);
	while (!broker_link_has_dead()) {
		assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
		broker_link_turn(NULL, 0);
	}
	end_broker(broker);
	listener = listen_there();
	refuse_there(&engine, listener, EUSERS, 1);
	assert_true(broker_link_has_dead());
	/* The thread that waits stops waiting when broker_link_changes returns
	 * another number.  So a turn that keeps the report of the death must
	 * not change that number. */
	changes = broker_link_changes();
	broker_link_turn(&engine, 1);
	assert_int_equal(broker_link_changes(), changes);
	close(listener);
	client_close(&other);
	broker_link_close();
	close(fd);
}

/* The thread that waits makes a new epoll set when broker_link_changes returns
 * another number. */
static void an_answer_is_no_change_of_the_descriptor(void **state)
{
	int fd = broker_link_socket(-1, -1, PATIENCE_NS);
	struct pollfd p = {broker_link_fd(), POLLIN, 0};
	struct client other; /* for broker_of, and for its class */
	uint32_t changes = broker_link_changes();
	const void *page = NULL;
	pid_t broker;

	assert_true(fd >= 0);
	open_or_fail(&other);
	broker = broker_of(&other);
	while (!broker_link_page_of(steer_qpn(other.class, 1), &page)) {
		poll(&p, 1, 5);
		broker_link_turn(NULL, 0);
	}
	assert_non_null(page);
	assert_int_equal(broker_link_changes(), changes);
	client_close(&other);
	end_broker(broker);
	broker_link_woken();
	broker_link_turn(NULL, 0);
	assert_int_not_equal(broker_link_changes(), changes);
	broker_link_close();
	close(fd);
}

/* The engine gets the answer about a peer by LID at once: the broker does not
 * know that peer. */
static void a_peer_by_lid_is_not_asked_about(void **state)
{
	struct engine_event e = {.qpn = 7, .dest_qpn = 9};
	struct engine engine = {0};
	int fd = broker_link_socket(-1, -1, PATIENCE_NS);
	struct client other; /* for broker_of */
	pid_t broker;

	assert_true(fd >= 0);
	open_or_fail(&other);
	broker = broker_of(&other);
	inaddr_map_lid(e.peer.ip, 16);
	broker_link_ask(&engine, &e, 5);
	assert_int_equal(engine.ibt.now_ns, 5); /* by engine_peer_state */
	client_close(&other);
	broker_link_close();
	close(fd);
	end_broker(broker);
}

enum { PEER_CLASS = 9 };

static int played; /* the connection at the broker that play_welcome plays */

/* Accepts a client, and gives it class 5 with a socket to which nothing comes.
 */
static void *play_welcome(void *listener)
{
	struct proto m = {0}, welcome = {.magic = PROTO_MAGIC,
					 .version = PROTO_VERSION,
					 .kind = PROTO_WELCOME,
					 .value = 5,
					 .about = (uint32_t)getpid(),
					 .brings = PROTO_FD_SOCKET};
	int fds[PROTO_FDS], pair[2];

	played = accept_client(*(int *)listener);
	assert_int_equal(proto_receive(played, &m, fds), 0);
	assert_int_equal(m.kind, PROTO_HELLO);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(proto_send(played, &welcome, pair), 0);
	close(pair[0]);
	close(pair[1]);
	return NULL;
}

static void expect_question(uint32_t qpn)
{
	int fds[PROTO_FDS];
	struct proto m = {0};

	assert_int_equal(proto_receive(played, &m, fds), 0);
	assert_int_equal(m.kind, PROTO_ASK_REMOTE);
	assert_int_equal(m.value, qpn);
	assert_int_equal(proto_receive(played, &m, fds), -EAGAIN);
}

static void expect_silence(void)
{
	int fds[PROTO_FDS];
	struct proto m = {0};

	assert_int_equal(proto_receive(played, &m, fds), -EAGAIN);
}

/* Begins a link to a broker that the test plays.  Stores the broker's listener
 * and the socket that the broker has brought in fds. */
static void begin_link(int fds[2])
{
	const struct device *device;
	pthread_t thread;

	fds[0] = listen_there();
	pthread_create(&thread, NULL, play_welcome, &fds[0]);
	fds[1] = broker_link_socket(-1, -1, PATIENCE_NS);
	assert_true(fds[1] >= 0);
	pthread_join(thread, NULL);
	assert_int_equal(device_list(&device), 1);
}

static void end_link(const int fds[2])
{
	broker_link_close();
	close(played);
	close(fds[0]);
	close(fds[1]);
}

/* The answer that one connection has ended says nothing about the other queue
 * pairs of the peer's process: this process asks the broker about the next
 * queue pair. */
static void an_ended_connection_answers_for_no_other_queue_pair(void **state)
{
	struct engine_event e = {.qpn = 7,
				 .peer.ip = {[10] = 0xff, 0xff, 192, 0, 2, 1}};
	struct proto left = {.magic = PROTO_MAGIC,
			     .version = PROTO_VERSION,
			     .kind = PROTO_ANSWER,
			     .value = PROTO_PEER_LEFT};
	struct engine engine = {0};
	int fds[2];

	begin_link(fds);
	for (uint32_t i = 1; i <= 2; i++) {
		e.qpn = 6 + i;
		e.dest_qpn = steer_qpn(PEER_CLASS, i);
		broker_link_ask(&engine, &e, 5);
	}
	expect_question(steer_qpn(PEER_CLASS, 1));
	left.about = steer_qpn(PEER_CLASS, 1);
	memcpy(left.peer, e.peer.ip, 16);
	assert_int_equal(proto_send(played, &left, NULL), 0);
	broker_link_turn(&engine, 6);
	assert_int_equal(engine.ibt.now_ns, 6); /* by engine_peer_state */
	expect_question(steer_qpn(PEER_CLASS, 2));
	left.about = steer_qpn(PEER_CLASS, 2);
	assert_int_equal(proto_send(played, &left, NULL), 0);
	broker_link_turn(&engine, 7);
	assert_int_equal(engine.ibt.now_ns, 7);
	end_link(fds);
}

/* The question about the peer of an earlier connection of the queue pair is
 * still open, so the answer may be about the earlier state of that peer.  The
 * engine has to ask again later. */
static void a_question_of_an_earlier_connection_delays_the_next(void **state)
{
	struct engine_event e = {.qpn = 7,
				 .connection = 1,
				 .dest_qpn = steer_qpn(PEER_CLASS, 1),
				 .peer.ip = {[10] = 0xff, 0xff, 192, 0, 2, 1}};
	struct engine engine = {0};
	int fds[2];

	begin_link(fds);
	broker_link_ask(&engine, &e, 5);
	expect_question(e.dest_qpn);
	broker_link_ask(&engine, &e, 6);
	assert_int_equal(engine.ibt.now_ns, 0); /* the engine has no answer */
	e.connection = 2;
	broker_link_ask(&engine, &e, 7);
	assert_int_equal(engine.ibt.now_ns, 7); /* by engine_peer_state */
	end_link(fds);
}

/* The broker's answer has found no room in this process's socket. */
static void a_question_without_an_answer_is_asked_again(void **state)
{
	struct engine_event e = {.qpn = 7,
				 .dest_qpn = steer_qpn(PEER_CLASS, 1),
				 .peer.ip = {[10] = 0xff, 0xff, 192, 0, 2, 1}};
	struct proto answer = {.magic = PROTO_MAGIC,
			       .version = PROTO_VERSION,
			       .kind = PROTO_ANSWER,
			       .value = PROTO_PEER_ALIVE,
			       .about = e.dest_qpn};
	struct engine engine = {0};
	int fds[2];

	begin_link(fds);
	broker_link_ask(&engine, &e, 5);
	expect_question(e.dest_qpn);
	broker_link_turn(&engine, 1000000000u);
	expect_silence();
	broker_link_turn(&engine, 3000000000u);
	expect_question(e.dest_qpn);
	memcpy(answer.peer, e.peer.ip, 16);
	assert_int_equal(proto_send(played, &answer, NULL), 0);
	broker_link_turn(&engine, 3000000001u);
	assert_int_equal(engine.ibt.now_ns, 3000000001u);
	end_link(fds);
}

static void ignore_event(const struct engine_event *e)
{
}

/* Runs as the first process of a PID namespace. */
static bool first_child_has_no_host(void)
{
	const struct host_sink sink = {.event = ignore_event};
	struct host *h = host_get(&sink);
	pid_t child;
	int status;

	if (!h || !host_is_ours(h) || unshare(CLONE_NEWPID))
		return false;
	child = fork();
	if (!child)
		_exit(getpid() != 1 || host_is_ours(h));
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static void the_first_process_of_a_namespace_has_no_host(void **state)
{
	int status = own_pids_run(first_child_has_no_host);

	if (own_pids_lack(status))
		SKIP_FOR("no PID namespace of our own");
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: a later test has this process say the sentence */
		cmocka_unit_test(a_refusal_says_whether_connections_continue),
		cmocka_unit_test(a_peer_by_lid_is_not_asked_about),
		cmocka_unit_test(a_question_without_room_is_asked_later),
		cmocka_unit_test(a_refusal_ends_the_questions_about_ports),
		cmocka_unit_test(a_question_without_an_answer_is_asked_again),
		cmocka_unit_test(an_answer_holds_while_its_class_has_its_owner),
		cmocka_unit_test(a_death_is_known_after_the_broker_has_died),
		cmocka_unit_test(an_answer_is_no_change_of_the_descriptor),
		cmocka_unit_test(
			an_ended_connection_answers_for_no_other_queue_pair),
		cmocka_unit_test(
			a_question_of_an_earlier_connection_delays_the_next),
		cmocka_unit_test(the_first_process_of_a_namespace_has_no_host),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
