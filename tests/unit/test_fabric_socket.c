/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_socket: if two fabrics want to listen at one path, one of them
 * gets it; a path that a fabric or a file has is left alone. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/fabric_socket.h"

static char path[] = "/tmp/adverb-fabric-XXXXXX/socket";

/* The rival, a second process, writes one of these to the pipe `news`. */
enum { WAITS = 'w', LISTENS = 'l', GIVES_UP = 'g' };
/* news: what the rival does; stay: the rival ends when the test closes stay[1]
 */
static int news[2] = {-1, -1}, stay[2] = {-1, -1};
static pid_t rival;
static bool calls_rival; /* the next unlink of the path starts the rival */
static bool is_rival;	 /* this process is the rival */

/* The result of fabric_client_connect; 0: that of the real function. */
static int connect_gives;

int __real_fabric_client_connect(const char *name, uint32_t patience_ms);
int __wrap_fabric_client_connect(const char *name, uint32_t patience_ms);
int __real_unlink(const char *name);
int __wrap_unlink(const char *name);
int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

int __wrap_fabric_client_connect(const char *name, uint32_t patience_ms)
{
	return connect_gives ? connect_gives
			     : __real_fabric_client_connect(name, patience_ms);
}

static void tell_news(char what)
{
	if (write(news[1], &what, 1) != 1)
		_exit(9);
}

static char hear_news(void)
{
	char what = 0;

	assert_int_equal(read(news[0], &what, 1), 1);
	return what;
}

/* The rival listens until the test closes `stay`. */
static _Noreturn void be_rival(void)
{
	char byte;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	is_rival = true;
	close(stay[1]);
	fd = fabric_socket_listen(path);
	tell_news(fd < 0 ? GIVES_UP : LISTENS);
	_exit(read(stay[0], &byte, 1) != 0);
}

/* The rival calls fabric_socket_listen when this process, in its own call, is
 * about to remove the old socket.  This process continues when the rival's call
 * has returned, or waits for the lock. */
int __wrap_unlink(const char *name)
{
	if (calls_rival && !strcmp(name, path)) {
		calls_rival = false;
		rival = fork();
		assert_true(rival >= 0);
		if (!rival)
			be_rival();
		tell_news(hear_news()); /* the test reads the byte, too */
	}
	return __real_unlink(name);
}

int __wrap_flock(int fd, int how)
{
	if (is_rival && !__real_flock(fd, how | LOCK_NB))
		return 0;
	if (is_rival)
		tell_news(WAITS);
	return __real_flock(fd, how);
}

/* Leaves the socket of a fabric that was killed. */
static void leave_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(a.sun_path, path, sizeof(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
}

/* Returns whether a connection to the path reaches the listener fd. */
static bool leads_to(int fd)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int c = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), got = -1;

	assert_true(c >= 0);
	memcpy(a.sun_path, path, sizeof(path));
	if (!connect(c, (struct sockaddr *)&a, sizeof(a)))
		got = accept(fd, NULL, NULL); /* fd does not block */
	close(c);
	if (got >= 0)
		close(got);
	return got >= 0;
}

static bool has_lock_file(void)
{
	char name[sizeof(path) + 8];

	snprintf(name, sizeof(name), "%s.lock", path);
	return !access(name, F_OK);
}

static void one_of_two_gets_the_path(void **state)
{
	int fd, status = -1;
	char first;

	assert_int_equal(pipe2(news, O_CLOEXEC), 0);
	assert_int_equal(pipe2(stay, O_CLOEXEC), 0);
	leave_socket();
	calls_rival = true;
	fd = fabric_socket_listen(path);
	assert_false(calls_rival); /* the socket that was left was removed */
	assert_true(fd >= 0);
	first = hear_news();
	assert_int_equal(first == WAITS ? hear_news() : first, GIVES_UP);
	assert_true(leads_to(fd));
	assert_false(has_lock_file());
	close(stay[1]);
	assert_int_equal(waitpid(rival, &status, 0), rival);
	assert_int_equal(status, 0);
	close(fd);
	close(stay[0]);
	close(news[0]);
	close(news[1]);
	assert_int_equal(__real_unlink(path), 0);
}

static void a_path_in_use_is_left_alone(void **state)
{
	int fd = fabric_socket_listen(path);
	struct stat s;

	assert_true(fd >= 0);
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 0777, 0600);
	assert_int_equal(fabric_socket_listen(path), -1);
	assert_true(leads_to(fd));
	assert_false(has_lock_file());
	close(fd);
	assert_int_equal(__real_unlink(path), 0);
}

/* Calls fabric_socket_listen, which has to fail, and copies the text that the
 * call prints to `text`. */
static void expect_refusal(char *text, size_t room)
{
	FILE *printed = tmpfile();
	int before = dup(STDERR_FILENO), err;

	dup2(fileno(printed), STDERR_FILENO);
	err = fabric_socket_listen(path);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(printed);
	text[fread(text, 1, room - 1, printed)] = '\0';
	fclose(printed);
	assert_int_equal(err, -1);
}

static void a_sentence_says_which_program_has_the_path(void **state)
{
	static const struct {
		int err;
		const char *said;
	} table[] = {
		{0, "a fabric, or another program of this user, listens "
		    "there; end a fabric by adverb fabric --socket "},
		{-ETIMEDOUT, "a program that does not answer listens there; "
			     "end that program"},
		{-EPERM, "a program of another user listens there; name"},
	};
	int fd = fabric_socket_listen(path);
	char text[512];

	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		connect_gives = table[i].err;
		expect_refusal(text, sizeof(text));
		connect_gives = 0;
		assert_non_null(strstr(text, table[i].said));
		assert_true(leads_to(fd));
	}
	close(fd);
	assert_int_equal(__real_unlink(path), 0);
}

/* A regular file refuses connections as the socket of a killed fabric does. */
static void a_file_at_the_path_is_left_alone(void **state)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	char text[512];
	struct stat s;

	assert_int_equal(write(fd, "mine", 4), 4);
	close(fd);
	expect_refusal(text, sizeof(text));
	assert_non_null(strstr(text, "a file that is no socket has this name"));
	assert_int_equal(stat(path, &s), 0);
	assert_true(S_ISREG(s.st_mode) && s.st_size == 4);
	assert_int_equal(__real_unlink(path), 0);
}

/* A link at the name of the lock's file is not followed. */
static void a_lock_that_is_no_file_refuses_the_path(void **state)
{
	char name[sizeof(path) + 8], text[512];

	snprintf(name, sizeof(name), "%s.lock", path);
	assert_int_equal(symlink("elsewhere", name), 0);
	expect_refusal(text, sizeof(text));
	assert_non_null(strstr(text, "it is a symbolic link"));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(__real_unlink(name), 0);
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
		cmocka_unit_test(one_of_two_gets_the_path),
		cmocka_unit_test(a_path_in_use_is_left_alone),
		cmocka_unit_test(a_sentence_says_which_program_has_the_path),
		cmocka_unit_test(a_file_at_the_path_is_left_alone),
		cmocka_unit_test(a_lock_that_is_no_file_refuses_the_path),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
