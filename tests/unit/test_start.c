/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of adverbd, and the sentence that says why a start fails. */
#include "brokers.h"

#include "broker/dial.h"
#include "broker/reason.h"
#include "broker/server.h"
#include "broker/start.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define RACES	40
#define RACE_US 1500 /* about as long as adverbd takes to begin */
/* how long other processes wait for the broker; a start has three quarters of
 * this time (start.limit_ms) */
#define PATIENCE_MS 60000
#define FREE	    3  /* no pause follows the first FREE short lives */
#define HOPELESS    11 /* short lives until -ENOTRECOVERABLE is returned */

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Starts adverbd at the time `at`, and calls start_turn until the start is
 * over.  Returns the last result. */
static int start_at(struct start *s, uint64_t at)
{
	int err = start_begin(s, at, PATIENCE_MS);

	while (err == -EINPROGRESS) {
		struct pollfd p = {s->status_fd, POLLIN, 0};

		poll(&p, 1, TEST_WAIT_MS);
		err = start_turn(s, at);
	}
	return err;
}

/* Runs `body` in a child process; `body` must return 0. */
static void run_in_child(int (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void the_last_line_says_why(void **state)
{
	static const struct {
		const char *words, *text;
	} table[] = {
		{"adverbd: it rains\n", "it rains"},
		{"/x/adverbd: error while loading shared libraries: y.so\n",
		 "error while loading shared libraries: y.so"},
		{"warning\nit is late\n", "it is late"},
		{"no newline", "no newline"},
		{"two\n\n \t\r\n", "two"},
		{"\033[2J\001\177\377 here\n", "?[2J??? here"},
		{"adverbd:nothing", "adverbd:nothing"},
	};
	char text[REASON_TEXT];

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		reason_words("/x/adverbd", table[i].words,
			     strlen(table[i].words), text);
		assert_string_equal(text, table[i].text);
	}
	reason_words("/x/adverbd", "a\0b", 3, text);
	assert_string_equal(text, "a?b");
	reason_words("/x/adverbd", "\n\n", 2, text);
	assert_non_null(strstr(text, "printed nothing"));
	reason_words("/x/adverbd", "", 0, text);
	assert_non_null(strstr(text, "printed nothing"));
}

static void a_long_line_and_a_long_path_are_cut(void **state)
{
	char words[2 * REASON_TEXT], path[2 * REASON_PATH];
	char text[REASON_TEXT], shown[REASON_PATH];

	memset(words, 'w', sizeof(words));
	reason_words("/x", words, sizeof(words), text);
	assert_int_equal(strlen(text), REASON_TEXT - 1);
	memset(path, 'p', sizeof(path) - 1);
	memcpy(path + sizeof(path) - 10, "\t/adverbd", 10);
	reason_path(path, shown);
	assert_int_equal(strlen(shown), REASON_PATH - 1);
	assert_memory_equal(shown, "...ppp", 6);
	assert_string_equal(shown + REASON_PATH - 10, "?/adverbd");
}

static void control_characters_of_a_release_are_not_shown(void **state)
{
	struct proto m = {.version = 99};
	char text[200];

	memset(m.release, '\n', sizeof(m.release));
	reason_version("it", &m, text, sizeof(text));
	assert_null(strchr(text, '\n'));
	assert_non_null(strstr(text, "? (protocol 99)"));
	memset(m.release, 0, sizeof(m.release));
	reason_version("it", &m, text, sizeof(text));
	assert_non_null(
		strstr(text, "is of adverb of another version (protocol 99)"));
}

/* Starts a broker at *at, and kills the broker after life_ms.  Returns whether
 * the next start is refused with `early` until pause_ms later; if pause_ms is
 * 0, whether the broker has served.  Stores that later time in *at. */
static bool pauses_for(uint64_t *at, uint64_t life_ms, uint64_t pause_ms,
		       int early)
{
	struct start s;

	if (start_at(&s, *at) || *s.sentence)
		return false;
	end_broker(s.broker);
	*at += life_ms;
	start_lost(s.broker, *at);
	/* a second report of the same death changes nothing */
	start_lost(s.broker, *at);
	*at += pause_ms;
	return !pause_ms || start_begin(&s, *at - 1, PATIENCE_MS) == early;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int count_pauses(void)
{
	uint64_t pause = 10, at = 1;
	struct start s;

	for (int i = 1; i <= HOPELESS; i++) {
		/* after a life of almost a second the pause is short */
		if (!pauses_for(&at, i % 2 ? 99 : 999,
				i <= FREE
					? 0
					: least_of(pause, i % 2 ? 10000 : 200),
				i < HOPELESS ? -EAGAIN : -ENOTRECOVERABLE))
			return i;
		if (i > FREE)
			pause *= 2;
	}
	start_begin(&s, at - 1, PATIENCE_MS);
	if (!strstr(s.sentence, "has ended 11 times in a row within a second"))
		return 101;
	/* a broker that lives for a second ends the row: no pause follows */
	for (int i = 0; i < 3; i++)
		if (!pauses_for(&at, i ? 99 : 1000, 0, 0))
			return 102;
	return 0;
}

static void a_broker_that_ends_at_once_is_started_ever_less_often(void **state)
{
	run_in_child(count_pauses);
}

/* The time limit of the start expires just when adverbd begins to serve. */
static int race_start(void)
{
	struct dial_broker b;
	char said[START_SENTENCE];
	struct start s;
	struct pollfd p;
	int err, fd;

	err = start_begin(&s, now_ms(), PATIENCE_MS);
	if (err && err != -EINPROGRESS)
		return 1;
	p = (struct pollfd){(int)syscall(SYS_pidfd_open, s.broker, 0), POLLIN,
			    0};
	usleep((unsigned)getpid() * 104729 % RACE_US);
	if (err)
		err = start_turn(&s, s.limit_ms);
	if (err || dial_open(&fd, &b, NULL, said))
		return 2;
	close(fd);
	if (!*s.sentence) {
		end_broker(s.broker);
		return b.idle_s == 10 ? 0 : 3;
	}
	/* the thread serves, and adverbd ends without having served */
	if (b.pid != getpid() || b.idle_s != UINT32_MAX)
		return 4;
	return p.fd < 0 || poll(&p, 1, TEST_WAIT_MS) == 1 ? 0 : 5;
}

static void either_adverbd_or_the_thread_serves(void **state)
{
	for (int i = 0; i < RACES; i++)
		run_in_child(race_start);
}

/* A child with the listening socket would keep the address of a dead broker. */
static void a_child_of_fork_has_no_descriptor_of_a_start(void **state)
{
	struct start s, next;
	uint64_t at = now_ms();
	int err = start_begin(&s, at, PATIENCE_MS);
	int forked[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(forked), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(forked[1], "f", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	/* the byte comes when fork has returned in the child, which has then
	 * run the handlers of pthread_atfork */
	close(forked[1]);
	assert_int_equal(read(forked[0], &byte, 1), 1);
	while (err == -EINPROGRESS)
		err = start_turn(&s, at);
	assert_int_equal(err, 0);
	end_broker(s.broker);
	assert_int_equal(start_at(&next, at), 0);
	end_broker(next.broker);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(forked[0]);
}

/* A daemon may have closed the standard files: descriptors of a start then get
 * the numbers 0 to 2. */
static int start_without_files(void)
{
	struct start s;
	int err;

	for (int i = 0; i < 3; i++)
		close(i);
	err = start_at(&s, now_ms());
	if (err || *s.sentence)
		return 1;
	end_broker(s.broker);
	return 0;
}

static void a_program_without_standard_files_starts_adverbd(void **state)
{
	run_in_child(start_without_files);
}

/* Begins a start that is not over when this function returns: start_turn has
 * still to find out whether adverbd serves.  Returns 0 or -errno. */
static int begin_unfinished(struct start *s)
{
	int err;

	while (!(err = start_begin(s, now_ms(), PATIENCE_MS)))
		end_broker(s->broker);
	return err == -EINPROGRESS ? 0 : err;
}

static bool has_message(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Returns whether a child of fork still has the descriptor. */
static bool survives_fork(int fd)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(fcntl(fd, F_GETFD) < 0);
	return waitpid(pid, &status, 0) == pid && !status;
}

static int replace_status_and_listener(void)
{
	struct start s;
	int pair[2], status_fd, listen_fd, err = begin_unfinished(&s);

	if (err)
		return 1;
	status_fd = s.status_fd;
	listen_fd = s.listen_fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) ||
	    send(pair[1], "w", 1, 0) != 1 || dup2(pair[0], status_fd) < 0 ||
	    dup2(pair[0], listen_fd) < 0)
		return 2;
	if (!survives_fork(status_fd) || !survives_fork(listen_fd))
		return 3;
	if (start_turn(&s, now_ms()) != -EPIPE)
		return 4;
	if (!strstr(s.sentence, "closed or replaced descriptors of adverb"))
		return 5;
	if (!has_message(status_fd) || !has_message(listen_fd))
		return 6;
	/* the first adverbd has ended, or is about to end; the next start
	 * succeeds then */
	while ((err = start_at(&s, now_ms())) == -EAGAIN)
		sched_yield();
	if (err || *s.sentence)
		return 7;
	end_broker(s.broker);
	return 0;
}

static void a_start_leaves_the_programs_files_alone(void **state)
{
	run_in_child(replace_status_and_listener);
}

/* No thread serves on a file of the program. */
static int replace_listener(void)
{
	struct start s;
	int pair[2], listen_fd;

	if (begin_unfinished(&s))
		return 1;
	kill(s.broker, SIGSTOP);
	listen_fd = s.listen_fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) ||
	    dup2(pair[0], listen_fd) < 0)
		return 2;
	switch (start_turn(&s, s.limit_ms)) {
	case 0: /* adverbd has served before it stopped */
		break;
	case -EBADF:
		if (!strstr(s.sentence, "Bad file descriptor"))
			return 3;
		break;
	default:
		return 4;
	}
	end_broker(s.broker);
	return fcntl(listen_fd, F_GETFD) < 0 ? 5 : 0;
}

static void no_thread_serves_a_file_of_the_program(void **state)
{
	run_in_child(replace_listener);
}

static int start_nothing(void)
{
	static const char want[] =
		"the broker /nowhere could not be run: it is missing; a thread "
		"of this program serves instead until it ends; mend what "
		"ADVERB_BROKER names";
	struct dial_broker b;
	char said[START_SENTENCE];
	struct start s;
	int fd;

	setenv("ADVERB_BROKER", "/nowhere", 1);
	if (start_begin(&s, now_ms(), PATIENCE_MS) ||
	    strcmp(s.sentence, want) != 0)
		return 1;
	if (dial_open(&fd, &b, NULL, said) || b.pid != getpid())
		return 2;
	close(fd);
	/* a thread serves in another namespace too, and no sentence is printed
	 */
	if (unshare(CLONE_NEWNET))
		return 3;
	if (start_begin(&s, now_ms(), PATIENCE_MS) || *s.sentence)
		return 4;
	return dial_open(&fd, &b, NULL, said) || b.pid != getpid() ? 5 : 0;
}

static void a_missing_adverbd_is_not_looked_for_twice(void **state)
{
	run_in_child(start_nothing);
}

/* Returns whether wait(2) finds no child, living or dead. */
static bool has_no_child(void)
{
	return waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD;
}

static int start_as_subreaper(void)
{
	struct dial_broker b;
	char said[START_SENTENCE];
	struct start s;
	int fd;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 1;
	if (start_at(&s, now_ms()) || *s.sentence)
		return 2;
	if (dial_open(&fd, &b, NULL, said) || b.pid != getpid())
		return 3;
	close(fd);
	return has_no_child() ? 0 : 4;
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

static int start_without_threads(void)
{
	struct start s;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 1;
	has_no_threads = true;
	if (start_at(&s, now_ms()) != -ENOMEM)
		return 2;
	return strstr(s.sentence, "raise ulimit -u") ? 0 : 3;
}

static int start_without_descriptors(void)
{
	struct rlimit few = {0, 0};
	struct start s;
	int fd = dup(0);

	close(fd);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 1;
	few.rlim_cur = (rlim_t)fd + 1; /* for the listener */
	few.rlim_max = 1024;
	if (setrlimit(RLIMIT_NOFILE, &few))
		return 2;
	if (start_at(&s, now_ms()) != -EMFILE)
		return 3;
	return strstr(s.sentence, "raise ulimit -n") ? 0 : 4;
}

static void a_program_is_told_what_a_thread_of_it_lacks(void **state)
{
	run_in_child(start_without_threads);
	run_in_child(start_without_descriptors);
}

static void a_program_that_adopts_orphans_gets_no_child(void **state)
{
	run_in_child(start_as_subreaper);
}

static int bind_the_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(4791)};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (!bind(fd, (struct sockaddr *)&a, sizeof(a)))
		return fd;
	close(fd);
	return -1;
}

/* Starts an adverbd that holds the port, with this umask.  When adverbd serves,
 * returns its answer to a client that connects. */
static struct dial_broker begin_holder(mode_t mask)
{
	pid_t pid = fork();
	struct dial_broker b;
	char said[START_SENTENCE];
	int fd;

	if (!pid) {
		umask(mask);
		execl(getenv("ADVERB_BROKER"), "adverbd", "--foreground",
		      "--hold-port", NULL);
		_exit(1);
	}
	/* wait until the broker listens, and then until it serves */
	while ((fd = proto_connect(PROTO_VERSION)) == -ECONNREFUSED)
		sched_yield();
	close(fd);
	assert_int_equal(dial_open(&fd, &b, NULL, said), 0);
	close(fd);
	assert_int_equal(b.pid, pid);
	return b;
}

static unsigned umask_of(pid_t pid)
{
	char path[32], line[128];
	unsigned mask = ~0u;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) &&
	       sscanf(line, "Umask: %o", &mask) != 1)
		;
	fclose(f);
	return mask;
}

/* Runs adverbd with an option and its value, if any, and copies to text what
 * adverbd writes to standard error.  Returns the exit status; -1: a signal has
 * killed adverbd. */
static int run_adverbd(const char *option, const char *value, char text[512])
{
	int out[2], status;
	size_t length = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		dup2(out[1], 2);
		close(out[0]);
		close(out[1]);
		execl(getenv("ADVERB_BROKER"), "adverbd", "--foreground",
		      option, value, NULL);
		_exit(1);
	}
	close(out[1]);
	while ((n = read(out[0], text + length, 511 - length)) > 0)
		length += (size_t)n;
	text[length] = '\0';
	close(out[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_wrong_option_is_refused_with_a_sentence(void **state)
{
	static const char *const values[] = {
		"abc", "", "-1", " 5", "5s", "31622401", "99999999999999999999",
	};
	char text[512], want[64];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_int_equal(run_adverbd("--idle", values[i], text), 2);
		snprintf(want, sizeof(want),
			 "adverbd: --idle %s: this is not a number", values[i]);
		assert_memory_equal(text, want, strlen(want));
	}
	assert_int_equal(run_adverbd("--idle", NULL, text), 2);
	assert_non_null(strstr(text, "--idle needs a number of seconds"));
	assert_int_equal(run_adverbd("--idel", "5", text), 2);
	assert_non_null(strstr(text, "--idel is no option of adverbd"));
}

/* Another process listens, and accepts no connection: its queue is full. */
static void a_full_queue_does_not_hold_up_adverbd(void **state)
{
	int listener = listen_there(), waiting[16], n = 0;
	char text[512];

	assert_int_equal(listen(listener, 0), 0);
	while ((waiting[n] = proto_connect(PROTO_VERSION)) >= 0)
		assert_true(++n < 16);
	assert_int_equal(waiting[n], -EAGAIN);
	assert_int_equal(run_adverbd(NULL, NULL, text), 0);
	assert_non_null(strstr(text, "another adverbd serves"));
	while (n)
		close(waiting[--n]);
	close(listener);
}

/* Serves a client, lets `spoil` change the listener, and takes a turn.  Returns
 * what server_listener_err then returns. */
static int serve_after(void (*spoil)(int listener))
{
	const struct server_config config = {.idle_ms = SERVER_NEVER};
	int listener = listen_there(), fd = proto_connect(PROTO_VERSION), err;
	struct server *s = server_new(listener, &config);

	assert_true(fd >= 0);
	assert_true(server_turn(s));
	assert_int_equal(server_listener_err(s), 0);
	spoil(listener);
	assert_false(server_turn(s));
	err = server_listener_err(s);
	server_free(s);
	close(fd);
	return err;
}

static void shut_down(int listener)
{
	assert_int_equal(shutdown(listener, SHUT_RDWR), 0);
}

static void shut_one_way(int listener)
{
	assert_int_equal(shutdown(listener, SHUT_RD), 0);
}

static void put_other_file_there(int listener)
{
	int null = open("/dev/null", O_RDONLY);

	assert_int_equal(dup2(null, listener), listener);
	close(null);
}

static void close_it(int listener)
{
	close(listener);
}

/* poll(2) returns at once if the listener was shut down, replaced or closed,
 * and no accept changes that.  A broker that went on would take all of a core.
 */
static void a_broker_ends_if_its_listener_accepts_no_more(void **state)
{
	char text[512];
	int listener, in;

	assert_int_equal(serve_after(shut_down), -ESHUTDOWN);
	assert_int_equal(serve_after(shut_one_way), -ESHUTDOWN);
	assert_int_equal(serve_after(put_other_file_there), -ENOTSOCK);
	assert_int_equal(serve_after(close_it), -EBADF);
	listener = listen_there();
	in = dup(0);
	shut_down(listener);
	dup2(listener, 0);
	assert_int_equal(run_adverbd(NULL, NULL, text), 1);
	assert_non_null(strstr(text, "ended: its listening socket accepts no "
				     "program any more: "));
	dup2(in, 0);
	close(in);
	close(listener);
}

static void the_umask_of_the_starter_is_not_the_brokers(void **state)
{
	for (mode_t mask = 0; mask <= 0777; mask += 0777) {
		pid_t pid = begin_holder(mask).pid;

		assert_int_equal(umask_of(pid), 022);
		end_broker(pid);
		waitpid(pid, NULL, 0);
	}
}

/* Nobody can take the port while no program runs. */
static void a_broker_that_holds_the_port_has_it_without_clients(void **state)
{
	struct dial_broker b = begin_holder(022);
	pid_t pid = b.pid;
	struct client c;

	assert_int_equal(b.idle_s, PROTO_IDLE_NEVER);
	assert_int_equal(bind_the_port(), -1);
	open_or_fail(&c);
	assert_int_equal(broker_of(&c), pid);
	client_close(&c);
	end_broker(pid);
	waitpid(pid, NULL, 0);
}

/* The broker takes the port as soon as the port is free. */
static void a_broker_waits_for_a_port_that_it_shall_hold(void **state)
{
	const struct server_config config = {.idle_ms = SERVER_NEVER};
	struct sockaddr_un a;
	socklen_t length = proto_address(&a);
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	int held = bind_the_port();
	const char *why = "";
	struct server *s;

	assert_true(held >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&a, length), 0);
	s = server_new(listener, &config);
	server_listen(s);
	assert_false(server_hold_port(s, &why));
	assert_non_null(strstr(why, "port 4791 is held by "));
	close(held);
	assert_true(server_turn(s));
	assert_int_equal(bind_the_port(), -1);
	server_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_line_says_why),
		cmocka_unit_test(a_long_line_and_a_long_path_are_cut),
		cmocka_unit_test(control_characters_of_a_release_are_not_shown),
		cmocka_unit_test(
			a_broker_that_ends_at_once_is_started_ever_less_often),
		cmocka_unit_test(either_adverbd_or_the_thread_serves),
		cmocka_unit_test(a_child_of_fork_has_no_descriptor_of_a_start),
		cmocka_unit_test(
			a_program_without_standard_files_starts_adverbd),
		cmocka_unit_test(a_start_leaves_the_programs_files_alone),
		cmocka_unit_test(no_thread_serves_a_file_of_the_program),
		cmocka_unit_test(a_missing_adverbd_is_not_looked_for_twice),
		cmocka_unit_test(a_program_is_told_what_a_thread_of_it_lacks),
		cmocka_unit_test(a_program_that_adopts_orphans_gets_no_child),
		cmocka_unit_test(a_wrong_option_is_refused_with_a_sentence),
		cmocka_unit_test(a_full_queue_does_not_hold_up_adverbd),
		cmocka_unit_test(a_broker_ends_if_its_listener_accepts_no_more),
		cmocka_unit_test(the_umask_of_the_starter_is_not_the_brokers),
		cmocka_unit_test(
			a_broker_that_holds_the_port_has_it_without_clients),
		cmocka_unit_test(a_broker_waits_for_a_port_that_it_shall_hold),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
