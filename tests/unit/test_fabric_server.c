/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_server: the fabric removes its own socket before it ends, serves
 * as many programs as its limits allow, and serves no other user. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/net.h"
#include "fabric/fabric_client.h"
#include "tools/fabric_server.h"

/* The limits on open files of a server that has few. */
#define SOFT  24
#define HARD  56
#define MANY  64 /* connections: more than HARD */
#define TURNS 100
#define MOST  8192 /* connections of a fabric */

static const struct rlimit few_files = {SOFT, HARD};
static char path[] = "/tmp/adverb-fabric-XXXXXX/socket";
static int said_fd;	  /* a memfd: the sentences of the server */
static bool is_unread;	  /* instead, they go to a pipe without a reader */
static uint32_t *accepts; /* calls of accept4, in the server's process */

int __real_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);

int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
	__atomic_fetch_add(accepts, 1, __ATOMIC_RELAXED);
	return __real_accept4(fd, a, n, flags);
}

static struct sockaddr_un socket_address(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	memcpy(a.sun_path, path, sizeof(path));
	return a;
}

static int listen_here(void)
{
	struct sockaddr_un a = socket_address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 2 * MANY), 0);
	return fd;
}

static void lead_sentences(void)
{
	int fd[2];

	if (!is_unread) {
		dup2(said_fd, STDERR_FILENO);
		return;
	}
	if (pipe(fd))
		_exit(5);
	dup2(fd[1], STDERR_FILENO);
	close(fd[0]);
	close(fd[1]);
}

/* In the child: serves until the fabric is stopped. */
static _Noreturn void serve_fabric(int listener, const struct rlimit *files)
{
	static const char text[] = "Switch 8 \"S\"\n"
				   "[1] \"H\"[1]\n"
				   "[2] \"H\"[2]\n"
				   "Hca 3 \"H\"\n"
				   "[1] \"S\"[1]\n"
				   "[2] \"S\"[2]\n";
	struct fabric_capture capture = {0};
	struct net_error error;
	struct fabric *f;
	struct net net;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	lead_sentences();
	if (files && setrlimit(RLIMIT_NOFILE, files))
		_exit(2);
	if (net_parse(text, sizeof(text) - 1, &net, &error))
		_exit(3);
	f = fabric_new(&net);
	_exit(fabric_server_run(f, listener, path, &capture, false, NULL) ? 4
									  : 0);
}

/* files: the server's limits on open files; NULL: those of this process. */
static pid_t start_fabric(const struct rlimit *files)
{
	int listener = listen_here();
	pid_t child;

	assert_int_equal(ftruncate(said_fd, 0), 0);
	assert_int_equal(lseek(said_fd, 0, SEEK_SET), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		serve_fabric(listener, files);
	close(listener);
	return child;
}

static int join_fabric(void)
{
	struct sockaddr_un a = socket_address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void ask_fabric(int fd, uint32_t kind)
{
	struct fabric_proto m = {.version = FABRIC_PROTO_VERSION, .kind = kind};

	assert_int_equal(send(fd, &m, sizeof(m), MSG_NOSIGNAL), sizeof(m));
}

static void take_answer(int fd)
{
	struct fabric_proto m;

	assert_int_equal(recv(fd, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(m.err, 0);
}

static void await_end(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
}

static void assert_ended(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Checks that the server has written a sentence that has both texts. */
static void assert_said(const char *why, const char *remedy)
{
	char text[1024];
	ssize_t n = pread(said_fd, text, sizeof(text) - 1, 0);

	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, why));
	assert_non_null(strstr(text, remedy));
}

/* The fabric closes the connection that has asked for the stop before it closes
 * 900 others.  The path must be gone by then. */
static void a_stopped_fabric_removes_its_path_first(void **state)
{
	static int others[900];
	pid_t child = start_fabric(NULL);
	int fd = join_fabric();

	ask_fabric(fd, FABRIC_PROTO_CA);
	take_answer(fd);
	for (size_t i = 0; i < TEST_COUNT(others); i++)
		others[i] = join_fabric();
	ask_fabric(others[TEST_COUNT(others) - 1], FABRIC_PROTO_CA);
	take_answer(others[TEST_COUNT(others) - 1]);
	ask_fabric(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	assert_int_equal(access(path, F_OK), -1);
	for (size_t i = 0; i < TEST_COUNT(others); i++)
		close(others[i]);
	assert_ended(child);
}

static void the_socket_of_another_fabric_stays(void **state)
{
	pid_t child = start_fabric(NULL), other;
	int fd = join_fabric();

	ask_fabric(fd, FABRIC_PROTO_CA);
	take_answer(fd);
	assert_int_equal(unlink(path), 0);
	other = start_fabric(NULL);
	ask_fabric(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	assert_ended(child);
	fd = join_fabric(); /* with the other fabric */
	ask_fabric(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	assert_ended(other);
}

/* A caller that shares the listener with a child then removes the path itself:
 * until it closes the listener, no other fabric can have the path. */
static void a_fabric_that_cannot_serve_leaves_its_path(void **state)
{
	const struct rlimit no_files = {0, 0};
	pid_t child = start_fabric(&no_files);
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), 4);
	assert_int_equal(unlink(path), 0);
}

static bool has_answer(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* More programs connect than the server has descriptors for. */
static void connections_wait_for_descriptors(void **state)
{
	pid_t child = start_fabric(&few_files);
	int fds[MANY], served = 0;
	uint32_t before;

	for (int i = 0; i < MANY; i++) {
		fds[i] = join_fabric();
		ask_fabric(fds[i], FABRIC_PROTO_CA);
	}
	/* after TURNS answers, the server has accepted all that it can */
	take_answer(fds[0]);
	for (int i = 0; i < TURNS; i++) {
		ask_fabric(fds[0], FABRIC_PROTO_CA);
		take_answer(fds[0]);
	}
	for (int i = 1; i < MANY; i++)
		served += has_answer(fds[i]);
	assert_true(served > SOFT && served < HARD);
	before = __atomic_load_n(accepts, __ATOMIC_RELAXED);
	for (int i = 0; i < TURNS; i++) {
		ask_fabric(fds[0], FABRIC_PROTO_CA);
		take_answer(fds[0]);
	}
	assert_int_equal(__atomic_load_n(accepts, __ATOMIC_RELAXED), before);
	/* when a connection ends, the server accepts one that waits */
	for (int i = 1; i < MANY; i++) {
		take_answer(fds[i]);
		close(fds[i]);
	}
	ask_fabric(fds[0], FABRIC_PROTO_STOP);
	take_answer(fds[0]);
	await_end(fds[0]);
	assert_ended(child);
}

/* The fabric writes a sentence about its descriptors. */
static void a_fabric_outlives_the_reader_of_its_sentences(void **state)
{
	is_unread = true;
	connections_wait_for_descriptors(state);
	is_unread = false;
}

/* Asks about a port of H, and waits for the answer.  The descriptor of a new
 * data end goes to *data. */
static struct fabric_proto ask_port(int fd, uint32_t kind, uint32_t port,
				    int *data)
{
	struct fabric_proto m = {.kind = kind, .number = port, .host = "H"};

	memset(m.gid, 0xff, sizeof(m.gid));
	m.err = fabric_client_ask(fd, &m, data);
	return m;
}

static int refusal_of(int fd, uint32_t kind, uint32_t port)
{
	return ask_port(fd, kind, port, NULL).err;
}

static void a_connection_has_a_data_end_at_each_port(void **state)
{
	pid_t child = start_fabric(NULL);
	int fd = join_fabric(), other = join_fabric(), data[3];
	struct fabric_proto m;

	m = ask_port(other, FABRIC_PROTO_DATA, 2, &data[0]);
	assert_int_equal(m.number, 1);
	assert_int_equal(refusal_of(fd, FABRIC_PROTO_JOIN, 2), -EINVAL);
	for (uint32_t port = 1; port <= 2; port++) {
		m = ask_port(fd, FABRIC_PROTO_DATA, port, &data[port]);
		assert_int_equal(m.err, 0);
		assert_int_equal(m.number, 2);
		assert_int_equal(refusal_of(fd, FABRIC_PROTO_DATA, port),
				 -EBUSY);
		assert_int_equal(refusal_of(fd, FABRIC_PROTO_JOIN, port), 0);
	}
	assert_int_equal(refusal_of(fd, FABRIC_PROTO_DATA, 0), -ENODEV);
	assert_int_equal(refusal_of(fd, FABRIC_PROTO_DATA, 4), -ENODEV);
	assert_int_equal(refusal_of(fd, FABRIC_PROTO_DATA, 5), -ENODEV);
	assert_int_equal(refusal_of(fd, FABRIC_PROTO_JOIN, 3), -EINVAL);
	for (int i = 0; i < 3; i++)
		close(data[i]);
	ask_fabric(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	close(other);
	assert_ended(child);
}

static void the_number_of_connections_is_bounded(void **state)
{
	static int others[MOST - 1];
	struct fabric_proto m = {.version = FABRIC_PROTO_VERSION,
				 .kind = FABRIC_PROTO_CA};
	struct rlimit files;
	int fd, more;
	pid_t child;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_max < MOST + 64)
		SKIP_FOR("the limit on open files (ulimit -Hn) is too low");
	files.rlim_cur = files.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	child = start_fabric(NULL);
	fd = join_fabric();
	for (int i = 0; i < MOST - 1; i++)
		others[i] = join_fabric();
	ask_fabric(others[MOST - 2], FABRIC_PROTO_CA);
	take_answer(others[MOST - 2]);
	more = join_fabric();
	/* a served connection would have an answer */
	send(more, &m, sizeof(m), MSG_NOSIGNAL);
	assert_true(recv(more, &m, sizeof(m), 0) <= 0);
	close(more);
	assert_said("the most connections", "end other programs");
	close(others[0]);
	/* the answer comes in the turn of the close, or in a later one */
	ask_fabric(fd, FABRIC_PROTO_CA);
	take_answer(fd);
	others[0] = join_fabric();
	ask_fabric(others[0], FABRIC_PROTO_CA);
	take_answer(others[0]);
	ask_fabric(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	for (int i = 0; i < MOST - 1; i++)
		close(others[i]);
	assert_ended(child);
}

/* Runs as another user.  Returns 0 if the fabric does not serve this user, and
 * the client refuses the fabric. */
static int meet_as_stranger(void)
{
	struct fabric_proto m = {.version = FABRIC_PROTO_VERSION,
				 .kind = FABRIC_PROTO_CA};
	int fd;

	if (setresgid(1, 1, 1) || setresuid(1, 1, 1))
		return 1;
	fd = join_fabric();
	if (send(fd, &m, sizeof(m), MSG_NOSIGNAL) > 0 &&
	    recv(fd, &m, sizeof(m), 0) > 0)
		return 2;
	return fabric_client_connect(path, 60000) != -EPERM;
}

static void another_user_is_not_served_and_not_trusted(void **state)
{
	char *slash = strrchr(path, '/');
	pid_t child, stranger;
	int fd;

	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	child = start_fabric(NULL);
	assert_int_equal(chmod(path, 0777), 0);
	*slash = '\0';
	assert_int_equal(chmod(path, 0755), 0);
	*slash = '/';
	stranger = fork();
	if (!stranger)
		_exit(meet_as_stranger());
	assert_ended(stranger);
	assert_said("only programs of its own user", "run the program as");
	fd = join_fabric();
	ask_fabric(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	assert_ended(child);
}

static int remove_folder(void **state)
{
	*strrchr(path, '/') = '\0';
	return rmdir(path);
}

static int make_folder(void **state)
{
	char *slash = strrchr(path, '/');

	*slash = '\0';
	if (!mkdtemp(path))
		return -1;
	*slash = '/';
	said_fd = memfd_create("said", MFD_CLOEXEC);
	accepts = mmap(NULL, sizeof(*accepts), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return accepts == MAP_FAILED ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_fabric_removes_its_path_first),
		cmocka_unit_test(a_connection_has_a_data_end_at_each_port),
		cmocka_unit_test(the_socket_of_another_fabric_stays),
		cmocka_unit_test(a_fabric_that_cannot_serve_leaves_its_path),
		cmocka_unit_test(connections_wait_for_descriptors),
		cmocka_unit_test(a_fabric_outlives_the_reader_of_its_sentences),
		cmocka_unit_test(the_number_of_connections_is_bounded),
		cmocka_unit_test(another_user_is_not_served_and_not_trusted),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
