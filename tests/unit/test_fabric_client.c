/* SPDX-License-Identifier: BSD-2-Clause */
/* fabric/fabric_client: a wrong answer of a fabric is refused and leaves no
 * descriptor open; a fabric that does not answer is given up; a fabric of
 * another user is not trusted. */
#include "brought.h"
#include "in_flight.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "fabric/fabric_client.h"
#include "util/monotonic.h"

/* Asks a fabric whose answer is `answer`, of `size` bytes, with n descriptors.
 * The serial of `answer` is added to that of the request.  Returns the result
 * of fabric_client_ask. */
static int ask_with(struct brought *b, const struct fabric_proto *answer,
		    size_t size, size_t n, int *fd)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA}, sent = *answer;
	int pair[2], err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	sent.serial += fabric_client_serial() + 1;
	brought_send(b, pair[0], &sent, size, n);
	err = fabric_client_ask(pair[1], &m, fd);
	close(pair[0]);
	close(pair[1]);
	return err;
}

static struct fabric_proto good_answer(void)
{
	return (struct fabric_proto){.version = FABRIC_PROTO_VERSION,
				     .kind = FABRIC_PROTO_CA};
}

static void an_answer_leaves_no_descriptor(void **state)
{
	const struct fabric_proto answer = good_answer();

	NEEDS_KERNEL(); /* an emulator leaves surplus descriptors open */
	for (size_t n = 1; n <= 3; n++) {
		struct brought none = brought_new(), one = brought_new(),
			       empty = brought_new();
		int fd;

		assert_int_equal(
			ask_with(&none, &answer, sizeof(answer), n, NULL), 0);
		assert_true(brought_are_closed(&none));
		assert_int_equal(
			ask_with(&one, &answer, sizeof(answer), n, &fd), 0);
		assert_true(fd >= 0);
		close(fd);
		assert_true(brought_are_closed(&one));
		assert_int_equal(ask_with(&empty, &answer, 0, n, &fd),
				 -ECONNRESET);
		assert_int_equal(fd, -1);
		assert_true(brought_are_closed(&empty));
		brought_free(&none);
		brought_free(&one);
		brought_free(&empty);
	}
}

/* Returns the result for an answer that came with a descriptor, which must be
 * closed. */
static int refusal_of(const struct fabric_proto *answer, size_t size)
{
	struct brought b = brought_new();
	int fd, err = ask_with(&b, answer, size, 1, &fd);

	assert_int_equal(fd, -1);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
	return err;
}

static void an_answer_of_another_form_is_refused(void **state)
{
	struct fabric_proto answer = good_answer();

	assert_int_equal(refusal_of(&answer, sizeof(answer) - 1), -EPROTO);
	answer.version++;
	assert_int_equal(refusal_of(&answer, sizeof(answer)), -EPROTO);
	answer = good_answer();
	answer.kind = FABRIC_PROTO_PORT;
	assert_int_equal(refusal_of(&answer, sizeof(answer)), -EPROTO);
	answer = good_answer();
	answer.err = 5;
	assert_int_equal(refusal_of(&answer, sizeof(answer)), -EPROTO);
	/* the caller may negate an -errno */
	answer.err = INT32_MIN;
	assert_int_equal(refusal_of(&answer, sizeof(answer)), -EPROTO);
	answer.err = -4096;
	assert_int_equal(refusal_of(&answer, sizeof(answer)), -EPROTO);
	answer.err = -ENODEV;
	assert_int_equal(refusal_of(&answer, sizeof(answer)), -ENODEV);
	answer = good_answer();
	answer.serial = 1; /* no such request was made */
	assert_int_equal(refusal_of(&answer, sizeof(answer)), -EPROTO);
}

/* The fabric was stopped, and answers a request after the program has stopped
 * waiting for that answer. */
static void an_answer_to_an_earlier_request_is_dropped(void **state)
{
	const struct timeval soon = {.tv_usec = 1000};
	struct fabric_proto late = {.kind = FABRIC_PROTO_SHARE};
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA}, answer;
	struct brought b = brought_new();
	int pair[2], fd;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon));
	assert_int_equal(fabric_client_ask(pair[1], &late, &fd), -ETIMEDOUT);
	assert_int_not_equal(late.serial, 0);
	late.err = -EBUSY;
	brought_send(&b, pair[0], &late, sizeof(late), 1);
	answer = good_answer();
	answer.serial = late.serial + 1;
	answer.number = 77;
	assert_int_equal(send(pair[0], &answer, sizeof(answer), 0),
			 sizeof(answer));
	assert_int_equal(fabric_client_ask(pair[1], &m, &fd), 0);
	assert_int_equal(m.number, 77);
	assert_int_equal(fd, -1);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
	close(pair[0]);
	close(pair[1]);
}

static void a_lack_of_descriptors_is_no_wrong_answer(void **state)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};
	struct fabric_proto answer = good_answer();
	struct brought b = brought_new();
	struct rlimit old, few;
	int pair[2], fd, err;

	NEEDS_KERNEL(); /* an emulator has descriptors of its own */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	answer.serial = fabric_client_serial() + 1;
	brought_send(&b, pair[0], &answer, sizeof(answer), 1);
	getrlimit(RLIMIT_NOFILE, &old);
	few = old;
	few.rlim_cur = 0; /* the open descriptors stay open */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = fabric_client_ask(pair[1], &m, &fd);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(err, -EMFILE);
	assert_int_equal(fd, -1);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
	close(pair[0]);
	close(pair[1]);
}

static void the_strings_of_an_answer_end_with_a_nul(void **state)
{
	struct fabric_proto answer = good_answer();

	memset(answer.host, 'h', sizeof(answer.host));
	memset(answer.text, 't', sizeof(answer.text));
	assert_int_equal(fabric_client_judge(&answer, sizeof(answer)), 0);
	assert_int_equal(strlen(answer.host), FABRIC_PROTO_NAME - 1);
	assert_int_equal(strlen(answer.text), FABRIC_PROTO_NAME - 1);
}

/* A fabric that is stopped accepts no connection and answers no request. */
static void a_silent_fabric_is_given_up(void **state)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;
	char text[512], folder[] = "/tmp/adverb-silent-XXXXXX";

	assert_non_null(mkdtemp(folder));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", folder);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(fabric_client_connect(at.sun_path, 1), -ECONNREFUSED);
	assert_int_equal(listen(listener, 0), 0);
	fd = fabric_client_connect(at.sun_path, 1);
	assert_true(fd >= 0);
	assert_int_equal(fabric_client_ask(fd, &m, NULL), -ETIMEDOUT);
	/* the queue of the listener is full */
	assert_int_equal(fabric_client_connect(at.sun_path, 1), -ETIMEDOUT);
	fabric_client_explain(at.sun_path, "H", -ETIMEDOUT, text, sizeof(text));
	assert_non_null(strstr(text, at.sun_path));
	assert_non_null(strstr(text, "does not answer"));
	close(fd);
	close(listener);
	unlink(at.sun_path);
	rmdir(folder);
}

static void a_reached_limit_is_told_with_its_remedy(void **state)
{
	static const struct {
		int err;
		const char *remedy;
	} lacks[] = {{-ENFILE, "fs.file-max"},
		     {-ENOMEM, "free memory"},
		     {-ENOBUFS, "free memory"}};
	char text[512];

	for (size_t i = 0; i < TEST_COUNT(lacks); i++) {
		fabric_client_explain("PATH", "H", lacks[i].err, text,
				      sizeof(text));
		assert_non_null(strstr(text, lacks[i].remedy));
		assert_null(strstr(text, "start a fabric"));
	}
	fabric_client_explain("PATH", "H", -EACCES, text, sizeof(text));
	assert_non_null(strstr(text, "start a fabric"));
}

/* If not 0: a signal interrupts the next recvmsg, after this many milliseconds
 * of the test's clock. */
static int interrupted_after_ms;
/* how far the clock is ahead of the kernel's */
static long skipped_ms;
/* how often recvmsg was called; the timeout of the last call of poll */
static int receives, waits_ms;

/* These functions replace those of libc. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	int err = (int)syscall(SYS_clock_gettime, id, t);

	t->tv_nsec += skipped_ms % 1000 * 1000000;
	t->tv_sec += skipped_ms / 1000 + t->tv_nsec / 1000000000;
	t->tv_nsec %= 1000000000;
	return err;
}

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	receives++;
	if (!interrupted_after_ms)
		return syscall(SYS_recvmsg, fd, m, flags);
	skipped_ms += interrupted_after_ms;
	interrupted_after_ms = 0;
	errno = EINTR;
	return -1;
}

int poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
	const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000};

	waits_ms = wait_ms;
	return (int)syscall(SYS_ppoll, fds, count, wait_ms < 0 ? NULL : &wait,
			    NULL, 0);
}

/* A signal comes in the last 10 ms of the wait for an answer.  The answer is
 * awaited for the rest, and not for the whole patience again. */
static void a_signal_does_not_begin_the_wait_anew(void **state)
{
	const struct timeval patience = {.tv_sec = 60};
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
	setsockopt(pair[1], SOL_SOCKET, SO_SNDTIMEO, &patience,
		   sizeof(patience));
	interrupted_after_ms = 59990;
	receives = waits_ms = 0;
	assert_int_equal(fabric_client_ask(pair[1], &m, NULL), -ETIMEDOUT);
	/* 0: this thread had no processor for the last 10 ms */
	assert_true(waits_ms <= 10);
	assert_int_equal(receives, 1);
	close(pair[0]);
	close(pair[1]);
}

/* Answers as a fabric that gives a pipe in place of a socket for connection
 * management. */
static void play_pipe_giver(int listener)
{
	struct fabric_proto m;
	struct brought b;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = accept(listener, NULL, NULL);
	while (recv(fd, &m, sizeof(m), 0) == sizeof(m)) {
		if (m.kind == FABRIC_PROTO_CM) {
			b = brought_new();
			brought_send(&b, fd, &m, sizeof(m), 1);
			brought_free(&b);
			continue;
		}
		m.port = (struct fabric_port){
			.max_mtu = 5, .mtu = 5, .state = 4, .guids = {1}};
		if (send(fd, &m, sizeof(m), 0) < 0)
			break;
	}
	_exit(0);
}

static void a_descriptor_of_another_kind_is_refused(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;
	int next = dup(listener);
	pid_t pid;

	close(next);
	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/adverb-pipe-%d",
		 (int)getpid());
	unlink(at.sun_path);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	pid = fork();
	if (!pid)
		play_pipe_giver(listener);
	assert_int_equal(fabric_client_open_cm(at.sun_path, 60000, &fd),
			 -EPROTO);
	assert_int_equal(fd, -1);
	assert_int_equal(dup(listener), next); /* no descriptor is left */
	close(next);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	unlink(at.sun_path);
	close(listener);
}

static void ignore_signal(int number)
{
}

/* From now on this process gets a signal every `ms` milliseconds; 0: never. */
static void set_signals(int ms)
{
	const struct itimerval every = {{0, ms * 1000}, {0, ms * 1000}};
	struct sigaction action = {.sa_handler = ignore_signal};

	sigaction(SIGALRM, &action, NULL);
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* A signal that comes while the program waits does not end the wait, and many
 * signals do not make the wait endless. */
static void signals_do_not_end_the_wait_for_a_fabric(void **state)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd;
	int silent; /* a connection whose request stays in the queue */
	char folder[] = "/tmp/adverb-signal-XXXXXX";
	uint64_t began_ns;

	assert_non_null(mkdtemp(folder));
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", folder);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	fd = fabric_client_connect(at.sun_path, 100);
	silent = fabric_client_connect(at.sun_path, 100);
	assert_true(fd >= 0 && silent >= 0);
	while (send(fd, &m, sizeof(m), MSG_DONTWAIT) > 0)
		; /* fills the queue of the connection */
	set_signals(5);
	began_ns = monotonic_ns();
	/* the queue of the listener is full */
	assert_int_equal(fabric_client_connect(at.sun_path, 100), -ETIMEDOUT);
	assert_int_equal(fabric_client_ask(fd, &m, NULL), -ETIMEDOUT);
	assert_int_equal(fabric_client_ask(silent, &m, NULL), -ETIMEDOUT);
	/* each of the three calls has waited for at least 99 of its 100 ms: a
	 * deadline is rounded by less than a millisecond */
	assert_true(monotonic_ns() - began_ns >= 3 * 99 * 1000000ull);
	set_signals(0);
	close(silent);
	close(fd);
	close(listener);
	unlink(at.sun_path);
	rmdir(folder);
}

enum { REFUSED = 77 };

/* Listens at a path, and connects to it.  Returns the result of
 * fabric_client_connect; 1: the listener could not be made. */
static int connect_to_self(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), err;

	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/adverb-self-%d",
		 (int)getpid());
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) ||
	    listen(listener, 1))
		return 1;
	err = fabric_client_connect(at.sun_path, 1000);
	unlink(at.sun_path);
	return err;
}

/* In a user namespace without a UID map, all users have the overflow UID, so
 * that the same UID does not prove the same user. */
static int connect_unmapped(void)
{
	if (connect_to_self() < 0)
		return 1;
	if (unshare(CLONE_NEWUSER))
		return REFUSED;
	return connect_to_self() != -EPERM;
}

static void a_uid_of_several_users_is_not_trusted(void **state)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(connect_unmapped());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		SKIP_FOR("no user namespace can be made here");
	assert_int_equal(status, 0);
}

/* The soft limit is this program's, and the descriptors in flight are those of
 * all programs of the user. */
static void bring_under_a_soft_limit(void)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_RING},
			    answer = good_answer();
	struct rlimit files;
	int pair[2];

	leave_in_flight();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	limit_files(UNDER_WAY / 2, files.rlim_max);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	answer.kind = m.kind;
	answer.serial = fabric_client_serial() + 1;
	assert_int_equal(send(pair[0], &answer, sizeof(answer), 0),
			 sizeof(answer));
	assert_int_equal(fabric_client_bring(pair[1], &m, pair[0], NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(files.rlim_cur, UNDER_WAY / 2);
}

static void a_soft_limit_does_not_bound_descriptors_in_flight(void **state)
{
	run_in_child(bring_under_a_soft_limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_leaves_no_descriptor),
		cmocka_unit_test(a_uid_of_several_users_is_not_trusted),
		cmocka_unit_test(an_answer_of_another_form_is_refused),
		cmocka_unit_test(an_answer_to_an_earlier_request_is_dropped),
		cmocka_unit_test(a_lack_of_descriptors_is_no_wrong_answer),
		cmocka_unit_test(the_strings_of_an_answer_end_with_a_nul),
		cmocka_unit_test(a_silent_fabric_is_given_up),
		cmocka_unit_test(a_reached_limit_is_told_with_its_remedy),
		cmocka_unit_test(signals_do_not_end_the_wait_for_a_fabric),
		cmocka_unit_test(a_signal_does_not_begin_the_wait_anew),
		cmocka_unit_test(a_descriptor_of_another_kind_is_refused),
		cmocka_unit_test(
			a_soft_limit_does_not_bound_descriptors_in_flight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
