/* SPDX-License-Identifier: BSD-2-Clause */
/* The process of an emulated subnet: its socket. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/net.h"
#include "fabric/proto.h"
#include "tools/fabric_server.h"

static char path[] = "/tmp/adverb-fabric-XXXXXX/socket";

static struct sockaddr_un address(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	memcpy(a.sun_path, path, sizeof(path));
	return a;
}

static int listen_here(void)
{
	struct sockaddr_un a = address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 16), 0);
	return fd;
}

/* In the child: serves until the fabric is stopped. */
static _Noreturn void serve(int listener)
{
	static const char text[] = "Switch 8 \"S\"\n"
				   "[1] \"H\"[1]\n"
				   "Hca 2 \"H\"\n"
				   "[1] \"S\"[1]\n";
	struct fabric_capture capture = {0};
	struct net_error error;
	struct fabric *f;
	struct net net;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (net_parse(text, sizeof(text) - 1, &net, &error))
		_exit(3);
	f = fabric_new(&net);
	_exit(fabric_server_run(f, listener, path, &capture) ? 4 : 0);
}

static pid_t start(void)
{
	int listener = listen_here();
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child)
		serve(listener);
	close(listener);
	return child;
}

static int join(void)
{
	struct sockaddr_un a = address();
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void ask(int fd, uint32_t kind)
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

/* The connection that stops the fabric ends before 900 others. */
static void a_stopped_fabric_leaves_its_path_first(void **state)
{
	static int others[900];
	pid_t child = start();
	int fd = join();

	ask(fd, FABRIC_PROTO_CA);
	take_answer(fd);
	for (size_t i = 0; i < TEST_COUNT(others); i++)
		others[i] = join();
	ask(others[TEST_COUNT(others) - 1], FABRIC_PROTO_CA);
	take_answer(others[TEST_COUNT(others) - 1]);
	ask(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	assert_int_equal(access(path, F_OK), -1);
	for (size_t i = 0; i < TEST_COUNT(others); i++)
		close(others[i]);
	assert_ended(child);
}

static void anothers_socket_stays(void **state)
{
	pid_t child = start(), other;
	int fd = join();

	ask(fd, FABRIC_PROTO_CA);
	take_answer(fd);
	assert_int_equal(unlink(path), 0);
	other = start();
	ask(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	assert_ended(child);
	fd = join(); /* with the other fabric */
	ask(fd, FABRIC_PROTO_STOP);
	take_answer(fd);
	await_end(fd);
	assert_ended(other);
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
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_fabric_leaves_its_path_first),
		cmocka_unit_test(anothers_socket_stays),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
