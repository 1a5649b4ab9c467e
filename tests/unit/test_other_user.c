/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broker/other_user: the packets and answers that processes of other users get
 * from a broker.  A test with several users needs root: its broker is root's,
 * all users trust root, and the process of another user is a child process.
 */
#include "brokers.h"
#include "brought.h"
#include "slow_close.h"

#include "broker/admission.h"
#include "broker/dial.h"
#include "broker/inside.h"
#include "broker/other_user.h"
#include "broker/peer_pages.h"
#include "broker/user.h"
#include "engine/credit.h"
#include "wire/relay.h"
#include "util/scm_rights.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define SOMEBODY   65534
#define ANOTHER	   65533
#define NO_WELCOME 0x80000000u

struct other {
	/* the child in the parent; 0 in the child */
	pid_t pid;
	/* the pipe to the child: its write end in the parent, its read end in
	 * the child */
	int go;
	/* the pipe from the child: its read end in the parent, its write end in
	 * the child */
	int said;
};

/* Returns whether a process can become each user of the tests.  Tests call this
 * before they open anything, because SKIP_FOR closes nothing. */
static bool has_other_users(void)
{
	return test_can_be(SOMEBODY) && test_can_be(ANOTHER);
}

/* Forks a child process of that user.  Returns true in the child, and false in
 * the parent. */
static bool fork_other(struct other *o, uid_t user)
{
	int go[2] = {-1, -1}, said[2] = {-1, -1};

	if (pipe(go) || pipe(said))
		fail();
	o->pid = fork();
	if (o->pid) {
		close(go[0]);
		close(said[1]);
		o->go = go[1];
		o->said = said[0];
		return false;
	}
	close(go[1]);
	close(said[0]);
	o->go = go[0];
	o->said = said[1];
	if (setresuid(user, user, user))
		_exit(1);
	return true;
}

static void tell_child(const struct other *o, uint32_t word)
{
	if (write(o->go, &word, sizeof(word)) != sizeof(word))
		_exit(1);
}

static void tell_parent(const struct other *o, uint32_t word)
{
	if (write(o->said, &word, sizeof(word)) != sizeof(word))
		_exit(1);
}

static uint32_t read_word(int fd)
{
	uint32_t word = 0;

	return read(fd, &word, sizeof(word)) == sizeof(word) ? word : 0;
}

/* Closes the pipes, waits until the child process ends, and fails unless its
 * status is 0. */
static void end_other(struct other *o)
{
	int status;

	close(o->go);
	assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
	close(o->said);
	assert_int_equal(status, 0);
}

static int domain_of(int fd)
{
	int domain = 0;
	socklen_t length = sizeof(domain);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
	return domain;
}

/* Returns the destination QPN of the next datagram from a relay; 0: no datagram
 * comes, or the relay's message is malformed. */
static uint32_t next_qpn(int fd)
{
	struct pollfd p = {fd, POLLIN, 0};
	uint8_t bytes[256];
	struct udp_dgram d;
	ssize_t n;

	if (poll(&p, 1, TEST_WAIT_MS) != 1)
		return 0;
	n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n <= 0 || !relay_parse(bytes, (size_t)n, &d) || d.len != 12)
		return 0;
	return (uint32_t)(d.bytes[5] << 16 | d.bytes[6] << 8 | d.bytes[7]);
}

static void packets_for_another_user_are_relayed_to_it(void **state)
{
	struct client me, c;
	struct other o;
	uint32_t theirs;
	pid_t broker;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	broker = broker_of(&me);
	if (fork_other(&o, SOMEBODY)) {
		open_or_fail(&c);
		tell_parent(&o, c.class);
		read_word(o.go);
		if (domain_of(c.udp_fd) != AF_UNIX)
			_exit(2);
		/* the relay brings both datagrams for the child, in order, and
		 * not the datagram for the parent */
		if (next_qpn(c.udp_fd) != steer_qpn(c.class, 5) ||
		    next_qpn(c.udp_fd) != steer_qpn(c.class, 6))
			_exit(3);
		_exit(0);
	}
	theirs = read_word(o.said);
	if (theirs) {
		assert_int_not_equal(theirs, me.class);
		send_to(steer_qpn(theirs, 5), AF_INET, "127.0.0.1");
		send_to(steer_qpn(me.class, 5), AF_INET, "127.0.0.1");
		send_to(steer_qpn(theirs, 6), AF_INET6, "::1");
		tell_child(&o, 1);
	}
	end_other(&o);
	assert_int_equal(take_all(&me), 1);
	client_close(&me);
	end_broker(broker);
}

static void pages_are_for_processes_of_one_user(void **state)
{
	struct credit_page *mine;
	struct client me, c;
	struct other o;
	uint32_t theirs;
	pid_t broker;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	broker = broker_of(&me);
	assert_non_null(page_of(&me, me.class));
	/* only processes of this user may see that a queue pair is closed */
	mine = client_page(&me);
	closed_note(&mine->closed, steer_qpn(me.class, 1));
	assert_int_equal(peer_state(&me, steer_qpn(me.class, 1)),
			 CLIENT_PEER_CLOSED);
	if (fork_other(&o, SOMEBODY)) {
		open_or_fail(&c);
		tell_parent(&o, c.class);
		if (!page_of(&c, c.class) || page_of(&c, me.class))
			_exit(2);
		if (peer_state(&c, steer_qpn(me.class, 1)) != CLIENT_PEER_ALIVE)
			_exit(3);
		read_word(o.go);
		_exit(0);
	}
	theirs = read_word(o.said);
	if (theirs)
		assert_null(page_of(&me, theirs));
	end_other(&o);
	client_close(&me);
	end_broker(broker);
}

/* Answers a question for the page of class 7 by the page at fd; -1: there is
 * none.  Returns what peer_pages_find returns for a caller that has *page. */
static bool answer_page_of_seven(struct peer_pages *p, int fd,
				 const void **page)
{
	peer_pages_asked(p, 7);
	peer_pages_take(p, 7, fd);
	return peer_pages_find(p, 7, page);
}

static void a_class_that_gets_another_page_is_followed(void **state)
{
	struct peer_pages *p = peer_pages_new();
	int fd[] = {shared_page_new(), shared_page_new(), shared_page_new()};
	const struct credit_page *had;
	const void *page = NULL;

	assert_true(answer_page_of_seven(p, fd[0], &page));
	had = page;
	assert_false(answer_page_of_seven(p, fd[0], &page));
	assert_false(answer_page_of_seven(p, -1, &page));
	assert_ptr_equal(page, had);
	assert_true(answer_page_of_seven(p, fd[1], &page));
	assert_true(shared_page_clear(fd[0], 8));
	assert_true(shared_page_clear(fd[1], 9));
	assert_int_equal(((const struct credit_page *)page)->generation, 9);
	/* the caller may still use the page that was replaced */
	assert_int_equal(had->generation, 8);
	page = had;
	assert_true(answer_page_of_seven(p, fd[2], &page));
	assert_int_equal(((const struct credit_page *)page)->generation, 9);
	assert_false(peer_pages_find(p, 7, &page));
	assert_true(answer_page_of_seven(p, fd[2], &page));
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	peer_pages_free(p);
}

static void a_relay_ends_with_its_client(void **state)
{
	struct client me, c;
	struct other o;
	pid_t broker;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	broker = broker_of(&me);
	if (fork_other(&o, SOMEBODY)) {
		struct pollfd p = {-1, POLLIN, 0};
		char byte;

		open_or_fail(&c);
		tell_parent(&o, c.class);
		p.fd = dup(c.udp_fd);
		client_close(&c);
		_exit(poll(&p, 1, TEST_WAIT_MS) != 1 ||
		      recv(p.fd, &byte, 1, 0) != 0);
	}
	read_word(o.said);
	end_other(&o);
	client_close(&me);
	end_broker(broker);
}

static void a_successor_relays_packets_too(void **state)
{
	struct client me, c;
	struct client_news news;
	struct other o;
	uint32_t theirs;
	pid_t broker;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	broker = broker_of(&me);
	if (fork_other(&o, SOMEBODY)) {
		pid_t first;

		open_or_fail(&c);
		first = broker_of(&c);
		tell_parent(&o, c.class);
		while (c.state != CLIENT_UP || broker_of(&c) == first)
			wait_turn(&c, &news);
		tell_parent(&o, c.class);
		_exit(next_qpn(c.udp_fd) != steer_qpn(c.class, 7));
	}
	theirs = read_word(o.said);
	if (theirs) {
		end_broker(broker);
		while (me.state != CLIENT_UP || broker_of(&me) == broker)
			wait_turn(&me, &news);
		broker = broker_of(&me);
		assert_int_equal(read_word(o.said), theirs);
		send_to(steer_qpn(theirs, 7), AF_INET, "127.0.0.1");
	}
	end_other(&o);
	client_close(&me);
	end_broker(broker);
}

/* In the child: replaces the relay by a file when the broker has died.  Returns
 * whether the client then sends no hello. */
static bool keeps_own_file(struct client *c, const struct other *o)
{
	struct client_news news;

	tell_parent(o, c->class);
	if (!read_word(o->go))
		return false;
	put_own_file(c->udp_fd);
	do
		wait_turn(c, &news);
	while (c->state != CLIENT_GREETING && c->due_ms != UINT64_MAX);
	return c->state == CLIENT_LOST;
}

static void no_file_of_the_program_goes_to_another_user(void **state)
{
	struct client me, c;
	struct other o;
	int listener;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	if (fork_other(&o, SOMEBODY)) {
		open_or_fail(&c);
		_exit(!keeps_own_file(&c, &o));
	}
	assert_int_not_equal(read_word(o.said), 0);
	end_broker(broker_of(&me));
	listener = listen_there();
	tell_child(&o, 1);
	end_other(&o);
	close(listener);
	client_close(&me);
}

/* Each client needs several descriptors in its process and in the broker. */
static void one_user_leaves_classes_to_others(void **state)
{
	static struct client many[STEER_CLASS_MAX];
	struct client me, c;
	struct other o, next;
	const char *why = "";
	pid_t broker;
	int n = 0;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	if (raise_limit() < 6 * STEER_CLASS_MAX)
		SKIP_FOR(FEW_FILES);
	open_or_fail(&me);
	broker = broker_of(&me);
	if (fork_other(&o, SOMEBODY)) {
		while (n < STEER_CLASS_MAX && !open_client(&many[n], &why))
			n++;
		if (!strstr(why, "its share of port 4791"))
			_exit(2);
		tell_parent(&o, (uint32_t)n);
		read_word(o.go);
		_exit(0);
	}
	n = (int)read_word(o.said);
	if (n)
		assert_int_equal(n, STEER_CLASS_MAX / 2);
	if (n && fork_other(&next, ANOTHER)) {
		close(o.go);
		open_or_fail(&c);
		_exit(0);
	}
	if (n)
		end_other(&next);
	end_other(&o);
	client_close(&me);
	end_broker(broker);
}

/* Opens connections until the broker refuses one.  Returns how many the broker
 * accepted; 0: the reason of the refusal is not the user's share. */
static uint32_t fill_connections(void)
{
	char said[START_SENTENCE] = "";
	uint32_t n = 0;
	int fd;

	while (n < CONN_MAX && !dial_open(&fd, NULL, NULL, said))
		n++;
	return strstr(said,
		      "connections to the broker adverbd, its whole share: end")
		       ? n
		       : 0;
}

/* The broker may open only so many files that there is room for ROOM
 * connections.  With room for CONN_MAX connections the test would take seconds,
 * since a user's thread polls all connections of the user for each new
 * connection.  On a busy machine the test would then take longer than the 30 s
 * that meson permits by default. */
static void one_user_leaves_connections_to_others(void **state)
{
	enum { ROOM = 200 };
	const struct rlimit files = {ROOM * ADMISSION_FILES,
				     ROOM * ADMISSION_FILES};
	struct client me, too, c;
	struct other o, next;
	pid_t broker;
	uint32_t n;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	broker = broker_of(&me);
	assert_int_equal(prlimit(broker, RLIMIT_NOFILE, &files, NULL), 0);
	if (fork_other(&o, SOMEBODY)) {
		tell_parent(&o, fill_connections());
		read_word(o.go);
		_exit(0);
	}
	n = read_word(o.said);
	if (n && fork_other(&next, ANOTHER)) {
		close(o.go);
		open_or_fail(&c);
		tell_parent(&next, fill_connections());
		_exit(0);
	}
	if (n) {
		assert_true(read_word(next.said) > n / 4);
		open_or_fail(&too);
		client_close(&too);
		end_other(&next);
	}
	end_other(&o);
	client_close(&me);
	end_broker(broker);
	assert_uint_in_range(n, ROOM / 2 - 2, ROOM / 2);
}

#define ASKERS 5

static const uint8_t here[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
static const uint8_t nowhere[16] = {[10] = 0xff, 0xff, 198, 51, 100, 1};

static void take_news(struct client *c)
{
	struct client_news news;

	while (client_turn(c, &news))
		;
}

/* Until o->go is readable, asks the broker about processes of a host that does
 * not answer, and reads all answers.  Tells the parent when each question was
 * asked once. */
static void ask_without_end(struct client *c, int n, const struct other *o)
{
	struct pollfd p = {o->go, POLLIN, 0};

	for (bool is_told = false; !poll(&p, 1, 0);) {
		for (int i = 0; i < n; i++)
			for (uint32_t k = 0; k < LIVE_OF_ONE; k++) {
				client_ask_remote(&c[i], k, here, nowhere, 0);
				take_news(&c[i]);
			}
		if (!is_told)
			tell_parent(o, 1);
		is_told = true;
	}
}

/* Asks whether the process with this QPN lives, as if that process ran on
 * another host.  So the broker asks the broker of that host, which here is the
 * broker itself. */
static enum client_peer far_state(struct client *c, uint32_t qpn)
{
	struct client_news news = {0};

	while (!client_ask_remote(c, qpn, here, here, 0))
		wait_turn(c, &news);
	while (!wait_turn(c, &news))
		;
	return news.what == CLIENT_NEWS_PEER ? news.peer : CLIENT_PEER_UNKNOWN;
}

static void one_user_leaves_questions_to_others(void **state)
{
	struct client me, c[ASKERS];
	struct other o, next;
	pid_t broker;
	bool asks;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	broker = broker_of(&me);
	if (fork_other(&o, SOMEBODY)) {
		for (int i = 0; i < ASKERS; i++)
			open_or_fail(&c[i]);
		ask_without_end(c, ASKERS, &o);
		_exit(0);
	}
	asks = read_word(o.said);
	if (asks && fork_other(&next, ANOTHER)) {
		close(o.go);
		open_or_fail(&c[0]);
		_exit(far_state(&c[0], steer_qpn(c[0].class, 1)) !=
		      CLIENT_PEER_ALIVE);
	}
	if (asks)
		end_other(&next);
	end_other(&o);
	client_close(&me);
	end_broker(broker);
}

/* A member of the SO_REUSEPORT group cannot replace the BPF program that
 * chooses the socket. */
static void a_member_cannot_replace_the_program_of_the_group(void **state)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {1, &all};
	struct client me;
	pid_t broker;

	open_or_fail(&me);
	broker = broker_of(&me);
	assert_int_equal(setsockopt(me.udp_fd, SOL_SOCKET,
				    SO_ATTACH_REUSEPORT_CBPF, &program,
				    sizeof(program)),
			 -1);
	assert_int_equal(errno, EPERM);
	client_close(&me);
	end_broker(broker);
}

/* Connects to the broker, and sends a message of `bytes` bytes, which brings
 * the last descriptor of a file that is slow to close.  Returns the connection.
 */
static int send_slow(size_t bytes)
{
	const struct proto m = {.magic = PROTO_MAGIC,
				.version = PROTO_VERSION,
				.kind = PROTO_HELLO,
				.brings = PROTO_FD_SOCKET};
	int fd = proto_connect(PROTO_VERSION), slow = slow_to_close();

	if (fd < 0 || brought_pass(fd, &m, bytes, slow, 1) < 0)
		_exit(5);
	close(slow);
	return fd;
}

/* Connects to the broker, and sends a descriptor at once, and again after the
 * broker has answered.  Returns which were refused, as a sum: 1, the first; 2,
 * the second; or 100 if the broker did not answer. */
static uint32_t bring_two(void)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_WHO};
	int fd = proto_connect(PROTO_VERSION), fds[PROTO_FDS];
	struct pollfd p = {fd, POLLIN, 0};
	uint32_t refused = 0;

	for (int i = 0; i < 2; i++) {
		m.brings = PROTO_FD_SOCKET;
		if (proto_send(fd, &m, &fd) == -EPERM)
			refused |= 1u << i;
		m.brings = 0;
		if (proto_send(fd, &m, NULL) || poll(&p, 1, -1) != 1 ||
		    proto_receive(fd, &(struct proto){0}, fds))
			return 100;
	}
	close(fd);
	return refused;
}

/* Sends PROTO_HELLO, as a new client without an arena does.  Returns which
 * descriptors the welcome brings (PROTO_FD_*), or NO_WELCOME. */
static uint32_t brought_by_welcome(void)
{
	struct proto m = {.magic = PROTO_MAGIC,
			  .version = PROTO_VERSION,
			  .kind = PROTO_HELLO};
	int fd = proto_connect(PROTO_VERSION), fds[PROTO_FDS], n = 0;
	struct pollfd p = {fd, POLLIN, 0};

	scm_rights_let_bring(fd, true);
	if (proto_send(fd, &m, NULL) || poll(&p, 1, TEST_WAIT_MS) != 1 ||
	    proto_receive(fd, &m, fds) || m.kind != PROTO_WELCOME)
		return NO_WELCOME;
	for (uint32_t rest = m.brings; rest; rest &= rest - 1)
		close(fds[n++]);
	close(fd);
	return m.brings;
}

/* The fd store lets its holder read the packets of all users. */
static void only_the_brokers_user_gets_the_fd_store(void **state)
{
	struct client me;
	struct other o;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	open_or_fail(&me);
	if (fork_other(&o, SOMEBODY))
		_exit(!!(brought_by_welcome() & (NO_WELCOME | PROTO_FD_STORE)));
	end_other(&o);
	assert_int_equal(brought_by_welcome() & (NO_WELCOME | PROTO_FD_STORE),
			 PROTO_FD_STORE);
	client_close(&me);
	end_broker(broker_of(&me));
}

static void another_user_can_bring_no_descriptor(void **state)
{
	struct client me;
	struct other o;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	if (!brought_can_be_refused())
		SKIP_FOR("this kernel is older than Linux 6.16");
	open_or_fail(&me);
	if (fork_other(&o, SOMEBODY))
		_exit(bring_two() != 3);
	end_other(&o);
	/* the broker's own user can bring a descriptor once the broker has
	 * answered */
	assert_true(bring_two() <= 1);
	client_close(&me);
	end_broker(broker_of(&me));
}

/* From now on, setsockopt of SO_PASSRIGHTS fails in this process and those that
 * it starts, as in a kernel before Linux 6.16. */
static void let_nobody_refuse_descriptors(void)
{
	static struct sock_filter refuse[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SO_PASSRIGHTS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(refuse) / sizeof(*refuse),
					  refuse};

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) &&
	    brought_can_be_refused())
		SKIP_FOR("no seccomp filter can be installed here");
}

#define SLOW_ONES 100 /* more than USER_RECEIVER_UNCLOSED */

/*
 * In the child: while the broker is stopped, sends descriptors of files that
 * are slow to close.  A process that receives such a message, or closes a
 * connection on which such a message waits, waits for the close of the file.
 * When the broker runs again, the child takes all classes that it gets, so that
 * its next connections are refused.
 */
static void send_slow_ones(const struct other *o)
{
	static struct client many[STEER_CLASS_MAX];
	const char *why = "";
	int n = 0;

	while (read_word(o->go)) {
		send_slow(sizeof(struct proto)); /* stays connected */
		send_slow(1);
		for (int i = 0; i < SLOW_ONES; i++)
			close(send_slow(i % 2 ? sizeof(struct proto) : 1));
		tell_parent(o, 1);
		read_word(o->go);
		while (n < STEER_CLASS_MAX && !open_client(&many[n], &why))
			n++;
		tell_parent(o, 1);
	}
	_exit(0);
}

/* Opens a client in a process of that user. */
static void open_as(uid_t user)
{
	struct other o;
	struct client c;

	if (fork_other(&o, user)) {
		open_or_fail(&c);
		_exit(0);
	}
	end_other(&o);
}

/* This test is the last, because its seccomp filter stays. */
static void descriptors_that_are_slow_to_close_delay_no_other_user(void **state)
{
	struct client me, more;
	struct rlimit files;
	struct other o;
	pid_t broker;

	if (!has_other_users())
		SKIP_FOR(ONE_USER);
	let_nobody_refuse_descriptors();
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	open_or_fail(&me);
	broker = broker_of(&me);
	if (fork_other(&o, SOMEBODY))
		send_slow_ones(&o);
	for (int i = 0; i < 2; i++) {
		stop_broker(broker);
		tell_child(&o, 1);
		assert_int_equal(read_word(o.said), 1);
		kill(broker, SIGCONT);
		open_or_fail(&more);
		client_close(&more);
		open_as(ANOTHER);
		assert_int_equal(peer_state(&me, steer_qpn(me.class, 1)),
				 CLIENT_PEER_ALIVE);
		tell_child(&o, 1);
		assert_int_equal(read_word(o.said), 1);
	}
	end_other(&o);
	client_close(&me);
	end_broker(broker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_for_another_user_are_relayed_to_it),
		cmocka_unit_test(pages_are_for_processes_of_one_user),
		cmocka_unit_test(a_class_that_gets_another_page_is_followed),
		cmocka_unit_test(a_relay_ends_with_its_client),
		cmocka_unit_test(a_successor_relays_packets_too),
		cmocka_unit_test(no_file_of_the_program_goes_to_another_user),
		cmocka_unit_test(one_user_leaves_classes_to_others),
		cmocka_unit_test(one_user_leaves_connections_to_others),
		cmocka_unit_test(one_user_leaves_questions_to_others),
		cmocka_unit_test(
			a_member_cannot_replace_the_program_of_the_group),
		cmocka_unit_test(only_the_brokers_user_gets_the_fd_store),
		cmocka_unit_test(another_user_can_bring_no_descriptor),
		cmocka_unit_test(
			descriptors_that_are_slow_to_close_delay_no_other_user),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
