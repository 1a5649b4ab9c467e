/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker is killed by SIGKILL: its clients keep their classes, and a
 * successor takes over. */
#include "brokers.h"
#include "refused_syscall.h"

#include "broker/server.h"
#include "util/fd_identity.h"

#include <limits.h>
#include <sys/eventfd.h>

#define CLIENTS 4
#define ROUNDS	20
#define KILLS	60

/* Shared with the broker of begin_short_broker, in which pidfd_open fails with
 * errno `err` for process pid; err 0: pidfd_open does not fail. */
struct refusal {
	volatile int pid, err;
};

static struct refusal *refusal; /* NULL: this process is not that broker */

static int refused_syscall(long number, long first)
{
	return number == SYS_pidfd_open && refusal && (int)first == refusal->pid
		       ? refusal->err
		       : 0;
}

/* Calls client_turn for each client until the client has a broker that is not
 * `dead`.  Returns the pid of that broker. */
static pid_t await_broker(struct client *c, int n, pid_t dead)
{
	struct client_news news;

	for (int i = 0; i < n; i++) {
		while (c[i].state != CLIENT_UP || c[i].broker.pid == dead)
			wait_turn(&c[i], &news);
		assert_int_equal(c[i].broker.pid, c[0].broker.pid);
	}
	return c[0].broker.pid;
}

/* Checks that each client gets all datagrams of its class. */
static void check_delivery(struct client *c, int n)
{
	for (int i = 0; i < n; i++)
		for (uint32_t k = 0; k < 10; k++)
			send_to(steer_qpn(c[i].class, k * 977), AF_INET,
				"127.0.0.1");
	for (int i = 0; i < n; i++)
		assert_int_equal(take_all(&c[i]), 10);
}

static void a_broker_that_dies_is_replaced_and_each_class_stays(void **state)
{
	struct client c[CLIENTS + 1];
	uint32_t class[CLIENTS];
	pid_t pid;

	for (int i = 0; i < CLIENTS; i++) {
		open_or_fail(&c[i]);
		class[i] = c[i].class;
	}
	pid = broker_of(&c[0]);
	for (int round = 0; round < ROUNDS; round++) {
		end_broker(pid);
		check_delivery(c, CLIENTS); /* while there is no broker */
		pid = await_broker(c, CLIENTS, pid);
		open_or_fail(&c[CLIENTS]);
		for (int i = 0; i < CLIENTS; i++) {
			assert_int_equal(c[i].class, class[i]);
			assert_int_not_equal(c[CLIENTS].class, class[i]);
			assert_int_equal(
				peer_state(&c[CLIENTS], steer_qpn(class[i], 7)),
				CLIENT_PEER_ALIVE);
		}
		check_delivery(c, CLIENTS + 1);
		client_close(&c[CLIENTS]);
	}
	for (int i = 0; i < CLIENTS; i++)
		client_close(&c[i]);
	end_broker(pid);
}

static void
a_client_that_has_not_noticed_the_death_keeps_its_class(void **state)
{
	struct client c[3];
	pid_t pid, dead;

	open_or_fail(&c[0]);
	open_or_fail(&c[1]);
	dead = broker_of(&c[0]);
	end_broker(dead);
	pid = await_broker(c, 1, dead);
	/* c[1] is like the client of a stopped process, which keeps its class.
	 */
	assert_int_equal(peer_state(&c[0], steer_qpn(c[1].class, 3)),
			 CLIENT_PEER_ALIVE);
	open_or_fail(&c[2]);
	assert_int_not_equal(c[2].class, c[1].class);
	check_delivery(c, 3);
	assert_int_equal(await_broker(c, 2, dead), pid);
	check_delivery(c, 3);
	for (int i = 0; i < 3; i++)
		client_close(&c[i]);
	end_broker(pid);
}

static void pages_outlive_the_broker(void **state)
{
	struct client c[2];
	const uint8_t *seen;
	uint8_t *own;
	pid_t pid;

	open_or_fail(&c[0]);
	open_or_fail(&c[1]);
	pid = broker_of(&c[0]);
	own = client_page(&c[0]);
	seen = page_of(&c[1], c[0].class);
	own[0] = 1;
	end_broker(pid);
	own[0] = 2;
	assert_int_equal(seen[0], 2);
	pid = await_broker(c, 2, pid);
	assert_ptr_equal(client_page(&c[0]), own);
	client_close(&c[1]);
	open_or_fail(&c[1]);
	seen = page_of(&c[1], c[0].class);
	own[0] = 3;
	assert_int_equal(seen[0], 3);
	client_close(&c[0]);
	client_close(&c[1]);
	end_broker(pid);
}

/* Starts a process with a client, for which the process calls client_turn until
 * `hold` is readable.  The process writes the pid of each new broker, and the
 * class, to `out`. */
static pid_t begin_client(int out, int hold)
{
	pid_t parent = getpid(), pid = fork(), told = 0;
	struct client_news news;
	struct client c;
	const char *why;

	/* The tests send signals to the process: PID -1 would stand for every
	 * process of the user. */
	assert_true(pid >= 0);
	if (pid)
		return pid;
	test_begin_child(parent);
	if (open_client(&c, &why)) {
		fprintf(stderr, "child: %s\n", why);
		_exit(1);
	}
	for (;;) {
		struct pollfd p[2] = {{client_fd(&c), POLLIN, 0},
				      {hold, POLLIN, 0}};
		bool due = client_due_ms(&c) != UINT64_MAX;

		if (c.state == CLIENT_UP && c.broker.pid != told) {
			uint32_t report[2] = {(uint32_t)c.broker.pid, c.class};

			told = c.broker.pid;
			if (write(out, report, sizeof(report)) < 0)
				_exit(1);
		}
		poll(p, 2, due ? 1 : -1);
		if (p[1].revents)
			_exit(0);
		client_turn(&c, &news);
	}
}

static void one_of_many_clients_starts_the_next_broker(void **state)
{
	enum { N = 12 };
	int out[2], hold[2];
	uint32_t report[2], class[N];
	pid_t pid = 0, children[N];
	int status;

	if (pipe(out) || pipe(hold))
		fail();
	/* Each child ends when hold[0] is readable. */
	for (int i = 0; i < N; i++)
		children[i] = begin_client(out[1], hold[0]);
	close(out[1]);
	for (int round = 0; round <= ROUNDS; round++) {
		for (int i = 0; i < N; i++) {
			assert_int_equal(read(out[0], report, sizeof(report)),
					 sizeof(report));
			if (i)
				assert_int_equal(report[0], pid);
			pid = (pid_t)report[0];
			class[i] = report[1];
			for (int k = 0; k < i; k++)
				assert_int_not_equal(class[i], class[k]);
		}
		end_broker(pid);
	}
	if (write(hold[1], "x", 1) != 1)
		fail();
	for (int i = 0; i < N; i++) {
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	close(out[0]);
	close(hold[0]);
	close(hold[1]);
}

static void
the_class_of_a_client_that_dies_without_a_broker_is_freed(void **state)
{
	int out[2], hold[2];
	uint32_t report[2];
	struct client me;
	pid_t pid, broker;

	if (pipe(out) || pipe(hold))
		fail();
	open_or_fail(&me);
	broker = broker_of(&me);
	pid = begin_client(out[1], hold[0]);
	assert_int_equal(read(out[0], report, sizeof(report)), sizeof(report));
	assert_int_equal(peer_state(&me, steer_qpn(report[1], 1)),
			 CLIENT_PEER_ALIVE);
	/* The process is stopped, so that it dies before it finds the next
	 * broker. */
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	end_broker(broker);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	broker = await_broker(&me, 1, broker);
	assert_int_equal(peer_state(&me, steer_qpn(report[1], 1)),
			 CLIENT_PEER_GONE);
	client_close(&me);
	end_broker(broker);
	close(out[0]);
	close(out[1]);
	close(hold[0]);
	close(hold[1]);
}

/* Starts a broker in a process of its own, which ends after idle_ms without
 * clients.  r: the process for which pidfd_open fails there.  Returns the
 * broker's pid. */
static pid_t begin_short_broker(struct refusal *r, uint64_t idle_ms)
{
	const struct server_config config = {.idle_ms = idle_ms};
	int listener = listen_there();
	struct server *s;
	pid_t parent = getpid(), broker = fork();

	assert_true(broker >= 0);
	if (broker) {
		close(listener);
		return broker;
	}
	test_begin_child(parent);
	refusal = r;
	s = server_new(listener, &config);
	while (server_turn(s))
		;
	_exit(0);
}

/* A process whose broker has died, the successor of that broker, and a client
 * of this test that asks the successor about the process. */
struct orphan {
	struct refusal *refusal;
	struct client me;
	int out[2], hold[2];
	uint32_t qpn; /* of the process's class */
	pid_t pid, broker;
};

/* Begins a process with a class, and stops the process, so that the process
 * does not find the successor of its broker.  In the successor, which ends
 * after idle_ms without clients, pidfd_open fails with `err` for that process.
 */
static void begin_orphan(struct orphan *o, int err, uint64_t idle_ms)
{
	uint32_t report[2];
	pid_t dead;

	if (pipe(o->out) || pipe(o->hold))
		fail();
	o->refusal = mmap(NULL, sizeof(*o->refusal), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(o->refusal, MAP_FAILED);
	open_or_fail(&o->me);
	dead = broker_of(&o->me);
	o->pid = begin_client(o->out[1], o->hold[0]);
	assert_int_equal(read(o->out[0], report, sizeof(report)),
			 sizeof(report));
	o->qpn = steer_qpn(report[1], 1);
	kill(o->pid, SIGSTOP);
	waitpid(o->pid, NULL, WUNTRACED);
	end_broker(dead);
	*o->refusal = (struct refusal){o->pid, err};
	o->broker = begin_short_broker(o->refusal, idle_ms);
	assert_int_equal(await_broker(&o->me, 1, dead), o->broker);
	assert_int_equal(peer_state(&o->me, o->qpn), CLIENT_PEER_ALIVE);
}

static void end_orphan(struct orphan *o)
{
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
}

/* Waits until the broker says by itself that the process has ended. */
static void await_death(struct orphan *o)
{
	struct client_news news;

	while (!wait_turn(&o->me, &news) || news.what != CLIENT_NEWS_DIED)
		;
	assert_int_equal(peer_state(&o->me, o->qpn), CLIENT_PEER_GONE);
}

static void close_orphan(struct orphan *o)
{
	waitpid(o->broker, NULL, 0);
	munmap(o->refusal, sizeof(*o->refusal));
	for (int i = 0; i < 2; i++) {
		close(o->out[i]);
		close(o->hold[i]);
	}
}

/* A successor takes a process for dead only if the process has ended.  When a
 * descriptor is free, the successor looks again, even if no message comes. */
static void a_successor_without_descriptors_releases_no_class(void **state)
{
	struct orphan o;

	begin_orphan(&o, EMFILE, INT_MAX);
	end_orphan(&o);
	assert_int_equal(peer_state(&o.me, o.qpn), CLIENT_PEER_ALIVE);
	o.refusal->err = 0;
	await_death(&o);
	client_close(&o.me);
	end_broker(o.broker);
	close_orphan(&o);
}

static void a_successor_without_pidfds_finds_the_dead(void **state)
{
	struct orphan o;

	begin_orphan(&o, EPERM, INT_MAX);
	end_orphan(&o);
	await_death(&o);
	client_close(&o.me);
	end_broker(o.broker);
	close_orphan(&o);
}

/* The broker ends although the process lives: the process has the fd store for
 * the next broker. */
static void a_process_that_cannot_be_watched_keeps_no_broker(void **state)
{
	struct pollfd end = {.events = POLLIN};
	struct orphan o;

	/* long enough for one more look at the process */
	begin_orphan(&o, EPERM, 1500);
	end.fd = (int)syscall(SYS_pidfd_open, o.broker, 0);
	client_close(&o.me);
	assert_int_equal(poll(&end, 1, TEST_WAIT_MS), 1);
	close(end.fd);
	end_orphan(&o);
	close_orphan(&o);
}

static void kills_at_any_moment_lose_no_class_and_no_datagram(void **state)
{
	struct client c[CLIENTS], extra;
	struct client_news news;
	int pidfd[KILLS];
	unsigned seed = 1;
	int killed = 0;
	pid_t pid;

	for (int i = 0; i < CLIENTS; i++)
		open_or_fail(&c[i]);
	pid = broker_of(&c[0]);
	for (int k = 0; k < KILLS; k++) {
		/* The next kill comes this many steps after this kill. */
		int steps = rand_r(&seed) % 12;

		pidfd[k] = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd[k] >= 0)
			killed += !kill(pid, SIGKILL);
		for (int i = 0; i < steps; i++)
			client_turn(&c[rand_r(&seed) % CLIENTS], &news);
		for (int i = 0; i < CLIENTS; i++)
			if (c[i].state == CLIENT_UP && c[i].broker.pid != pid) {
				pid = c[i].broker.pid;
				skipped_ms += LIFE_MS;
			}
	}
	for (int k = 0; k < KILLS; k++) {
		struct pollfd p = {pidfd[k], POLLIN, 0};

		if (pidfd[k] >= 0)
			assert_int_equal(poll(&p, 1, TEST_WAIT_MS), 1);
		close(pidfd[k]);
	}
	assert_true(killed > 0);
	/* Clients that have not noticed a broker's death yet notice it now. */
	for (int i = 0; i < CLIENTS; i++)
		client_turn(&c[i], &news);
	pid = await_broker(c, CLIENTS, 0);
	check_delivery(c, CLIENTS);
	open_or_fail(&extra);
	client_close(&extra);
	for (int i = 0; i < CLIENTS; i++)
		client_close(&c[i]);
	end_broker(pid);
}

static void a_successor_gives_the_arenas_too(void **state)
{
	int arena = memfd_create("arena", MFD_CLOEXEC);
	int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct client_want shares = {arena, wake_fd, 60000, NULL};
	struct client c[2];
	const char *why = "";
	pid_t pid;

	assert_int_equal(client_open(&c[0], &shares, &why), 0);
	open_or_fail(&c[1]);
	pid = broker_of(&c[0]);
	for (int round = 0; round < ROUNDS; round++) {
		struct client_news news;

		end_broker(pid);
		pid = await_broker(c, 2, pid);
		news = arena_of(&c[1], c[0].class);
		assert_int_equal(news.arena, CLIENT_ARENA_HERE);
		assert_int_equal(news.arena_at.fd, arena);
		close(news.peer_wake_fd);
	}
	client_close(&c[0]);
	client_close(&c[1]);
	close(arena);
	close(wake_fd);
	end_broker(pid);
}

/* Receives the hello that a client sends to its next broker, which is this
 * test; returns the connection. */
static int accept_hello(struct client *c, int listener, struct proto *m,
			int fds[PROTO_FDS])
{
	struct client_news news;
	int fd;

	do
		wait_turn(c, &news);
	while (c->state != CLIENT_GREETING);
	fd = accept_client(listener);
	*m = (struct proto){0};
	assert_int_equal(proto_receive(fd, m, fds), 0);
	assert_int_equal(m->kind, PROTO_HELLO);
	return fd;
}

static void close_all(const int fds[PROTO_FDS])
{
	for (int i = 0; i < PROTO_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Checks that the client's hello to the next broker shares an arena and an
 * eventfd, or that it does not. */
static void check_hello(struct client *c, int listener, bool shares)
{
	int fds[PROTO_FDS];
	struct proto m;

	close(accept_hello(c, listener, &m, fds));
	assert_true(fds[0] >= 0);
	assert_int_equal(fds[4] >= 0, shares);
	assert_int_equal(m.arena.pid != 0, shares);
	close_all(fds);
}

/* The program replaces the descriptor of the arena (which: 0) or of the eventfd
 * (1) by a file.  Then the client sends neither to the next broker. */
static void check_sharing(int which)
{
	int own[2] = {fd_identity_note(memfd_create("arena", MFD_CLOEXEC)),
		      fd_identity_note(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))};
	struct client_want shares = {own[0], own[1], 60000, NULL};
	const char *why = "";
	struct client c;
	int listener;

	assert_int_equal(client_open(&c, &shares, &why), 0);
	end_broker(broker_of(&c));
	listener = listen_there();
	check_hello(&c, listener, true);
	put_own_file(own[which]);
	check_hello(&c, listener, false);
	client_close(&c);
	close(listener);
	for (int i = 0; i < 2; i++)
		fd_identity_close(own[i]);
	close(own[which]);
}

static void no_file_of_the_program_is_shared(void **state)
{
	check_sharing(0);
	check_sharing(1);
}

/* Welcomes the client to its next broker, which is this test, and returns
 * whether the client sends its tree of counters. */
static bool shows_tree(struct client *c, int listener)
{
	struct proto m, welcome = {.magic = PROTO_MAGIC,
				   .version = PROTO_VERSION,
				   .kind = PROTO_WELCOME,
				   .value = c->class};
	int fds[PROTO_FDS], fd;
	struct client_news news;
	bool shown;

	fd = accept_hello(c, listener, &m, fds);
	close_all(fds);
	assert_int_equal(proto_send(fd, &welcome, NULL), 0);
	while (c->state != CLIENT_UP)
		wait_turn(c, &news);
	shown = !proto_receive(fd, &m, fds);
	if (shown) {
		assert_int_equal(m.kind, PROTO_TREE);
		close_all(fds);
	}
	close(fd);
	return shown;
}

static void no_file_of_the_program_is_sent_as_the_tree_of_counters(void **state)
{
	int listener, folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct client c;

	open_or_fail(&c);
	client_tree(&c, folder);
	end_broker(broker_of(&c));
	listener = listen_there();
	assert_true(shows_tree(&c, listener));
	put_own_file(folder);
	assert_false(shows_tree(&c, listener));
	client_close(&c);
	close(folder);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_successor_gives_the_arenas_too),
		cmocka_unit_test(
			a_broker_that_dies_is_replaced_and_each_class_stays),
		cmocka_unit_test(
			a_client_that_has_not_noticed_the_death_keeps_its_class),
		cmocka_unit_test(pages_outlive_the_broker),
		cmocka_unit_test(one_of_many_clients_starts_the_next_broker),
		cmocka_unit_test(
			the_class_of_a_client_that_dies_without_a_broker_is_freed),
		cmocka_unit_test(
			a_successor_without_descriptors_releases_no_class),
		cmocka_unit_test(a_successor_without_pidfds_finds_the_dead),
		cmocka_unit_test(
			a_process_that_cannot_be_watched_keeps_no_broker),
		cmocka_unit_test(
			kills_at_any_moment_lose_no_class_and_no_datagram),
		cmocka_unit_test(no_file_of_the_program_is_shared),
		cmocka_unit_test(
			no_file_of_the_program_is_sent_as_the_tree_of_counters),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
