/* SPDX-License-Identifier: BSD-2-Clause */
/* A broker or a client that can open no further descriptor works without that
 * descriptor, or says which limit is reached.  test_in_flight.c tests
 * descriptors in flight. */
#include "low_limits.h"

#include "broker/admission.h"
#include "broker/dial.h"
#include "broker/inside.h"
#include "broker/refuse_full.h"
#include "broker/server.h"
#include "broker/poll_sparse.h"
#include "util/scm_rights.h"

#include <dlfcn.h>
#include <limits.h>
#include <sys/eventfd.h>

#define MANY	  10000
#define ROOM	  60		 /* descriptors that begin_full leaves free */
#define FREE_MOST 3		 /* the most that leave_free leaves */
#define CROWD	  (ROOM / 2 + 4) /* each client costs a broker two fds */

static void ask_for_the_limits(void)
{
	char why[96];

	limit_files(FEW, HARD);
	refuse_full_why(EMFILE, why, sizeof(why));
	assert_non_null(strstr(why, "files, 32, is reached: raise ulimit -n"));
	refuse_full_why(ETOOMANYREFS, why, sizeof(why));
	assert_non_null(strstr(why, "990 descriptors in flight: end programs"));
	refuse_full_why(ENFILE, why, sizeof(why));
	assert_non_null(strstr(why, "raise fs.file-max"));
	refuse_full_why(EAGAIN, why, sizeof(why));
	assert_non_null(strstr(why, "starts no thread"));
	assert_non_null(strstr(why, "pids.max"));
	refuse_full_why(ENOMEM, why, sizeof(why));
	assert_non_null(strstr(why, "lacks memory"));
	assert_non_null(strstr(why, "memory.max"));
}

static void a_full_broker_names_what_it_lacks(void **state)
{
	run_in_child(ask_for_the_limits);
}

static void open_without_room(void)
{
	const char *why = "";
	struct client c;
	int last;

	limit_files(FEW, FEW);
	for (int fd = 0; fd >= 0; fd = dup(0))
		last = fd;
	close(last); /* for the connection */
	assert_int_equal(client_open(&c, &silent, &why), -EMFILE);
	assert_string_equal(why, "this program's limit on open files, 32, is "
				 "reached: raise ulimit -n");
}

static void a_program_without_room_is_told_of_its_limit(void **state)
{
	run_beside_broker(open_without_room);
}

/* Opens descriptors up to a limit. */
static void fill_table(void)
{
	limit_files(FEW, HARD);
	while (dup(0) >= 0)
		;
	assert_int_equal(errno, EMFILE);
}

/* The program opens as many files as it may, before the broker's answer brings
 * a descriptor. */
static void keep_class_without_room(void)
{
	struct client_want want = silent;
	struct client_news news;
	struct client peer, c;
	const char *why = "";
	uint32_t class;

	want.arena_fd = memfd_create("arena", 0);
	want.peer_wake_fd = eventfd(0, EFD_CLOEXEC);
	if (client_open(&peer, &want, &why) || client_open(&c, &want, &why))
		fail_msg("%s", why);
	class = c.class;
	assert_true(client_ask_arena(&c, peer.class));
	fill_table();
	while (!wait_turn(&c, &news))
		;
	assert_int_equal(news.what, CLIENT_NEWS_ARENA);
	assert_int_equal(news.arena, CLIENT_ARENA_NONE);
	assert_int_equal(c.state, CLIENT_UP);
	assert_int_equal(c.class, class);
}

static void a_program_without_room_keeps_its_class(void **state)
{
	run_beside_broker(keep_class_without_room);
}

/*
 * Starts a broker in a process of its own, with room for ROOM more descriptors.
 * The broker's limit on open files stays large, since all descriptors that the
 * user's programs have in flight count against that limit.  Returns the
 * broker's pid.
 */
static pid_t begin_full(void)
{
	const struct server_config config = {.idle_ms = INT_MAX};
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), fds[ROOM], extra;
	struct rlimit files;
	struct server *s;
	pid_t pid;

	assert_int_equal(bind(fd, (struct sockaddr *)&a, length), 0);
	assert_int_equal(listen(fd, CROWD), 0);
	pid = fork();
	if (pid) {
		close(fd);
		return pid;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_max > MANY)
		files.rlim_max = MANY;
	limit_files(files.rlim_max, files.rlim_max);
	s = server_new(fd, &config);
	for (int i = 0; i < ROOM; i++)
		fds[i] = dup(0);
	do
		extra = dup(0);
	while (extra >= 0);
	for (int i = 0; i < ROOM; i++)
		close(fds[i]);
	for (;;)
		server_turn(s);
}

static void end_full(pid_t broker)
{
	end_broker(broker);
	assert_int_equal(waitpid(broker, NULL, 0), broker);
}

static void assert_told(int err, const char *why)
{
	assert_int_equal(err, -EMFILE);
	assert_non_null(
		strstr(why, "the broker adverbd's limit on open files"));
	assert_non_null(strstr(why, "is reached: raise ulimit -n"));
}

static void a_full_broker_gives_each_client_the_reason(void **state)
{
	struct client c[ROOM], more;
	pid_t broker = begin_full();
	const char *why = "";
	int n = 0, err;

	while (!(err = client_open(&c[n], &silent, &why)))
		assert_true(++n < ROOM);
	assert_true(n > 0);
	for (int i = 0; i < ROOM; i++) {
		assert_told(err, why);
		err = client_open(&more, &silent, &why);
	}
	/* a client that closes makes room */
	client_close(&c[--n]);
	open_or_fail(&c[n++]);
	while (n)
		client_close(&c[--n]);
	end_full(broker);
}

/* Connections of clients that want no class use up the broker's descriptors, so
 * that no other client is accepted. */
static void a_client_that_cannot_be_accepted_is_told_why(void **state)
{
	pid_t broker = begin_full();
	const char *why = "";
	struct client first, more;
	int crowd[CROWD], n = 0, err;
	char said[START_SENTENCE];

	open_or_fail(&first);
	while (!(err = dial_open(&crowd[n], NULL, NULL, said)))
		assert_true(++n < CROWD);
	assert_told(err, said);
	err = client_open(&more, &silent, &why);
	assert_told(err, why);
	while (n)
		close(crowd[--n]);
	client_close(&first);
	end_full(broker);
}

/* Leaves room for `count` more descriptors: 1 to FREE_MOST. */
static void leave_free(rlim_t count)
{
	int fd[FREE_MOST], top = 0;

	/* the numbers may have gaps, where the test has inherited descriptors
	 */
	for (rlim_t i = 0; i < count; i++)
		top = fd[i] = dup(0);
	while (count)
		close(fd[--count]);
	limit_files((rlim_t)top + 1, (rlim_t)top + 1);
}

/* A connection takes the last descriptor, and none is left for the pidfd by
 * which the broker would learn of the client's end. */
static void connect_with_one_descriptor(void)
{
	const struct server_config config = {.idle_ms = INT_MAX};
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_WHO};
	struct server *s = server_new(listen_there(), &config);
	int fd = proto_connect(PROTO_VERSION), fds[PROTO_FDS];

	assert_int_equal(proto_send(fd, &m, NULL), 0);
	leave_free(1);
	while (proto_receive(fd, &m, fds) == -EAGAIN)
		server_turn(s);
	assert_int_equal(m.kind, PROTO_REFUSED);
	assert_told(-(int)m.value, m.why);
	assert_int_equal(s->conns, 0);
	close(fd);
	server_free(s);
}

static void a_client_that_cannot_be_watched_is_refused(void **state)
{
	run_in_child(connect_with_one_descriptor);
}

/* Two connections wait when the broker accepts.  The client has shut the first
 * connection down; proto_look would close it.  The pidfd of the second
 * connection needs a descriptor that the broker has only after it has closed
 * the first connection. */
static void connect_after_a_look(void)
{
	const struct server_config config = {.idle_ms = INT_MAX};
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_WHO};
	struct server *s = server_new(listen_there(), &config);
	int look = proto_connect(PROTO_VERSION);
	int fd = proto_connect(PROTO_VERSION), fds[PROTO_FDS];

	/* a close would leave a free descriptor below `fd` */
	assert_int_equal(shutdown(look, SHUT_RDWR), 0);
	assert_int_equal(proto_send(fd, &m, NULL), 0);
	leave_free(3);
	while (proto_receive(fd, &m, fds) == -EAGAIN)
		server_turn(s);
	assert_int_not_equal(m.kind, PROTO_REFUSED);
	assert_int_equal(s->conns, 1);
	close(look);
	close(fd);
	server_free(s);
}

static void a_connection_that_has_hung_up_keeps_no_descriptor(void **state)
{
	run_in_child(connect_after_a_look);
}

/* How often this thread has called poll.  The broker has threads of its own,
 * which call poll too. */
static _Thread_local int polls;

int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	static int (*real)(struct pollfd *, nfds_t, int);

	polls++;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "poll");
	return real(fds, count, timeout_ms);
}

/* The broker has no spare descriptor, because none was left, and a connection
 * waits. */
static void wait_without_a_descriptor(void)
{
	struct refuse_full a;
	int listener = listen_there();

	assert_true(proto_connect(PROTO_VERSION) >= 0);
	limit_files(1, FEW);
	refuse_full_init(&a);
	assert_int_equal(a.spare_fd, -1);
	assert_int_equal(refuse_full_accept(&a, listener), -1);
	/* A poll of the listener would return at once, again and again: the
	 * broker would use a whole core. */
	for (int i = 0; i < 2; i++) {
		assert_false(refuse_full_may_accept(&a));
		assert_int_equal(refuse_full_patience(&a, -1), REFUSE_FULL_MS);
		refuse_full_turn(&a, 0);
	}
	limit_files(FEW, FEW);
	refuse_full_turn(&a, 0);
	assert_true(refuse_full_may_accept(&a));
	assert_true(a.spare_fd >= 0);
	refuse_full_close(&a);
}

static void a_broker_without_a_spare_descriptor_waits_for_one(void **state)
{
	run_in_child(wait_without_a_descriptor);
}

/* Before the broker refuses a connection, it closes those that have hung up.  A
 * user at the limit must not make the broker look at all connections for each
 * refusal. */
static void look_twice_in_a_turn(void)
{
	const struct server_config config = {.idle_ms = INT_MAX};
	struct server *s = server_new(listen_there(), &config);
	int first = proto_connect(PROTO_VERSION), second;

	server_turn(s);
	assert_int_equal(s->conns, 1);
	polls = 0;
	server_drop_hung_up(s, geteuid());
	server_drop_hung_up(s, geteuid());
	assert_int_equal(polls, 1);
	/* a connection that was added may have hung up already */
	second = proto_connect(PROTO_VERSION);
	close(second);
	assert_true(admission_accept(s));
	server_drop_hung_up(s, geteuid());
	assert_int_equal(s->conns, 1);
	/* a call for another user than the last one looks at all connections
	 * again */
	close(first);
	server_drop_hung_up(s, geteuid() + 1);
	assert_int_equal(s->conns, 0);
	server_free(s);
}

static void connections_that_hang_up_are_looked_for_once(void **state)
{
	run_in_child(look_twice_in_a_turn);
}

/* A class that the dead broker gave to a process needs no descriptor while the
 * successor knows nothing of that process. */
static void a_class_without_a_client_takes_no_share(void **state)
{
	struct server *s = calloc(1, sizeof(*s));
	char why[96];

	assert_non_null(s);
	s->group.user = 1;
	for (; s->conns < 2; s->conns++)
		s->conn[s->conns] =
			(struct conn){.fd = -1, .pidfd = -1, .user = 2};
	assert_int_equal(
		admission_check(s, 4 * ADMISSION_FILES, 2, why, sizeof(why)),
		0);
	s->conn[0].fd = s->conn[1].fd = 0;
	assert_int_equal(
		admission_check(s, 4 * ADMISSION_FILES, 2, why, sizeof(why)),
		-EUSERS);
	/* the table is full */
	for (; s->conns < CONN_MAX; s->conns++)
		s->conn[s->conns] =
			(struct conn){.fd = -1, .pidfd = -1, .user = 2};
	assert_int_equal(admission_check(s, UINT64_MAX, 1, why, sizeof(why)),
			 -EUSERS);
	free(s);
}

/* A broker has PER_CONN entries of struct pollfd for each client, but most
 * clients need fewer.  poll(2) fails for more entries than the limit on open
 * files. */
static void watch_more_entries_than_files(void)
{
	struct pollfd p[2 * FEW], room[2 * FEW];
	int fd = eventfd(1, EFD_CLOEXEC);

	limit_files(FEW, FEW);
	for (int i = 0; i < 2 * FEW; i++)
		p[i] = (struct pollfd){i % 4 ? -1 : fd, POLLIN, 0};
	p[8].events = 0;
	assert_int_equal(poll_sparse_all(p, room, 2 * FEW, 0), FEW / 2 - 1);
	for (int i = 0; i < 2 * FEW; i++)
		assert_int_equal(p[i].revents, i % 4 || i == 8 ? 0 : POLLIN);
}

static void a_broker_polls_more_entries_than_its_limit_on_files(void **state)
{
	run_in_child(watch_more_entries_than_files);
}

/* Polls all entries with this limit on open files; quiet has no event, and
 * ready has one. */
static void watch_with_limit(rlim_t limit, int quiet, int ready)
{
	struct pollfd p[FEW], room[FEW];
	struct rlimit files;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	limit_files(limit, files.rlim_max);
	for (int i = 0; i < FEW; i++)
		p[i] = (struct pollfd){quiet, POLLIN, 0};
	assert_int_equal(poll_sparse_all(p, room, FEW, 0), 0);
	assert_int_equal(poll_sparse_all(p, room, FEW, -1), 0);
	p[0].fd = p[FEW - 1].fd = ready;
	assert_int_equal(poll_sparse_all(p, room, FEW, -1), limit ? 2 : 0);
	for (int i = 0; i < FEW; i++)
		assert_int_equal(p[i].revents,
				 limit && p[i].fd == ready ? POLLIN : 0);
}

static void watch_more_files_than_the_limit(void)
{
	int quiet = eventfd(0, EFD_CLOEXEC), ready = eventfd(1, EFD_CLOEXEC);

	for (rlim_t limit = 0; limit < FEW; limit++)
		watch_with_limit(limit, quiet, ready);
}

/* A program in which the broker is a thread may lower the limit below the
 * number of files that are open already. */
static void a_broker_polls_more_files_than_a_lowered_limit(void **state)
{
	run_in_child(watch_more_files_than_the_limit);
}

#define QUESTIONS 40

static void send_word(int fd, enum proto_kind kind, uint32_t value)
{
	const struct proto m = {.magic = PROTO_MAGIC,
				.version = PROTO_VERSION,
				.kind = (uint16_t)kind,
				.value = value};

	assert_int_equal(proto_send(fd, &m, NULL), 0);
}

/* Receives all messages that wait.  Adds their number to *messages, and closes
 * the descriptors that came with them.  Returns the number of descriptors. */
static int read_words(int fd, int *messages)
{
	struct proto m = {0};
	int fds[PROTO_FDS], n = 0;

	while (!proto_receive(fd, &m, fds)) {
		++*messages;
		for (int i = 0; i < PROTO_FDS; i++)
			if (fds[i] >= 0) {
				close(fds[i]);
				n++;
			}
	}
	return n;
}

static void turn_often(struct server *s)
{
	for (int i = 0; i < QUESTIONS; i++)
		server_turn(s);
}

/* Opens a client of this server.  The client has a class, and has not read its
 * PROTO_WELCOME yet. */
static int begin_client(struct server *s)
{
	int fd = proto_connect(PROTO_VERSION);

	assert_true(fd >= 0);
	scm_rights_let_bring(fd, true);
	send_word(fd, PROTO_HELLO, 0);
	while (!s->conns || !s->conn[0].class)
		server_turn(s);
	return fd;
}

/* The errno with which sendmsg fails for each message of this thread that
 * brings descriptors; 0: the kernel sends the message. */
static _Thread_local int unsent;

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (!unsent || !m->msg_controllen)
		return syscall(SYS_sendmsg, fd, m, flags);
	errno = unsent;
	return -1;
}

/* Connects to the server, and sends a hello for `class` with the descriptors
 * fds, which `brings` names.  The answer of the server cannot bring
 * descriptors.  Stores the answer in *m, and returns the connection. */
static int greet_in_vain(struct server *s, uint32_t class, uint32_t brings,
			 const int *fds, struct proto *m)
{
	const struct proto hello = {.magic = PROTO_MAGIC,
				    .version = PROTO_VERSION,
				    .kind = PROTO_HELLO,
				    .brings = brings,
				    .value = class};
	int fd = proto_connect(PROTO_VERSION), got[PROTO_FDS];

	server_turn(s); /* accepts the connection, and lets it bring fds */
	scm_rights_let_bring(fd, true);
	assert_int_equal(proto_send(fd, &hello, fds), 0);
	unsent = ENOBUFS;
	server_turn(s);
	unsent = 0;
	assert_int_equal(proto_receive(fd, m, got), 0);
	return fd;
}

static void a_client_that_cannot_be_welcomed_is_told_why(void **state)
{
	const struct server_config config = {.idle_ms = INT_MAX};
	struct server *s = server_new(listen_there(), &config);
	struct proto m = {0};
	int fd = greet_in_vain(s, 0, 0, NULL, &m);

	assert_int_equal(m.kind, PROTO_REFUSED);
	assert_int_equal(m.value, ENOBUFS);
	assert_non_null(strstr(m.why, "lacks memory: free memory"));
	assert_int_equal(s->conn[0].class, 0);
	close(fd);
	server_free(s);
}

/* The client has a class from an earlier broker, and brings the fd store of
 * that broker. */
static void a_client_that_has_a_class_is_welcomed_without_a_store(void **state)
{
	const struct server_config config = {.idle_ms = INT_MAX};
	struct server *s = server_new(listen_there(), &config);
	int first = begin_client(s), fd, fds[PROTO_FDS];
	struct proto m = {0};
	uint32_t class;

	assert_int_equal(proto_receive(first, &m, fds), 0);
	class = m.value;
	server_free(s); /* the client has the descriptors still */
	s = server_new(listen_there(), &config);
	fd = greet_in_vain(s, class, PROTO_FD_SOCKET | PROTO_FD_STORE,
			   (int[]){fds[0], fds[2]}, &m);
	assert_int_equal(m.kind, PROTO_WELCOME);
	assert_int_equal(m.value, class);
	assert_int_equal(m.brings, 0);
	assert_true(reuseport_group_is_owned(&s->group, class));
	close(fd);
	close(first);
	server_free(s);
	for (int i = 0; i < PROTO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void
a_client_that_does_not_read_has_few_descriptors_in_flight(void **state)
{
	const struct server_config config = {.idle_ms = INT_MAX};
	struct server *s = server_new(listen_there(), &config);
	int fd = begin_client(s), messages = 0, fds;

	for (int i = 0; i < QUESTIONS; i++)
		send_word(fd, PROTO_PAGE, s->conn[0].class);
	turn_often(s);
	fds = read_words(fd, &messages);
	assert_uint_in_range(fds, 3, ADMISSION_FILES);
	/* the client gets all answers when it reads */
	while (messages <= QUESTIONS) {
		server_turn(s);
		fds += read_words(fd, &messages);
	}
	assert_int_equal(fds, 3 + QUESTIONS);
	close(fd);
	server_free(s);
}

/* A closed connection stays until its messages are read, and counts against the
 * share of its user meanwhile. */
static void a_connection_that_is_not_read_stays(void **state)
{
	const struct server_config config = {.idle_ms = 100};
	struct server *s = server_new(listen_there(), &config);
	int fd = begin_client(s), messages = 0;
	uint32_t class = s->conn[0].class;

	assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
	for (int i = 0; i < 4; i++)
		server_turn(s);
	assert_int_equal(s->conns, 1);
	assert_false(reuseport_group_is_owned(&s->group, class));
	assert_int_equal(read_words(fd, &messages), 3);
	server_turn(s);
	assert_int_equal(s->conns, 0);
	close(fd);
	server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_broker_names_what_it_lacks),
		cmocka_unit_test(a_program_without_room_keeps_its_class),
		cmocka_unit_test(a_program_without_room_is_told_of_its_limit),
		cmocka_unit_test(a_full_broker_gives_each_client_the_reason),
		cmocka_unit_test(a_client_that_cannot_be_accepted_is_told_why),
		cmocka_unit_test(a_client_that_cannot_be_watched_is_refused),
		cmocka_unit_test(
			a_broker_without_a_spare_descriptor_waits_for_one),
		cmocka_unit_test(a_client_that_cannot_be_welcomed_is_told_why),
		cmocka_unit_test(
			a_client_that_has_a_class_is_welcomed_without_a_store),
		cmocka_unit_test(connections_that_hang_up_are_looked_for_once),
		cmocka_unit_test(
			a_connection_that_has_hung_up_keeps_no_descriptor),
		cmocka_unit_test(a_class_without_a_client_takes_no_share),
		cmocka_unit_test(
			a_broker_polls_more_entries_than_its_limit_on_files),
		cmocka_unit_test(
			a_broker_polls_more_files_than_a_lowered_limit),
		cmocka_unit_test(
			a_client_that_does_not_read_has_few_descriptors_in_flight),
		cmocka_unit_test(a_connection_that_is_not_read_stays),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
