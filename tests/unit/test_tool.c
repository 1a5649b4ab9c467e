/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/tool: the command lines by which `adverb pair` starts the tools that it
 * knows.  tools/launch: where `adverb run` finds a program.  tools/listen: the
 * port of a server.  tools/side: a side whose program has ended. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch.h"
#include "tools/listen.h"
#include "tools/side.h"
#include "tools/tool.h"

/* Returns the words that tool_argv makes of the command line @line, joined by
 * blanks, for the server or the client of a program whose usage text is @usage.
 */
static const char *argv_by_usage(bool server, const char *line,
				 const char *usage)
{
	static char joined[256];
	const struct tool *tool;
	char path[64];
	char copy[256];
	char *user[16];
	const char *out[32];
	int count = 0;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		user[count++] = word;
	user[count] = NULL;
	assert_non_null(tool_find(user[0]));
	tool = tool_by_usage(tool_find(user[0]), usage);
	assert_true(tool_argv(tool, server, user, "ADDR", "PORT", out,
			      TEST_COUNT(out)) > 0);
	if (!server)
		out[0] = tool_client(tool, user[0], path, sizeof(path));
	joined[0] = '\0';
	for (int i = 0; out[i]; i++) {
		strcat(joined, i ? " " : "");
		strcat(joined, out[i]);
	}
	return joined;
}

static const char *argv_of(bool server, const char *line)
{
	return argv_by_usage(server, line, "");
}

static void each_tool_gets_the_flags_it_needs(void **state)
{
	static const struct {
		const char *user, *server, *client;
	} rows[] = {
		{"ib_write_bw", "ib_write_bw -p PORT",
		 "ib_write_bw -p PORT ADDR"},
		{"ib_send_lat -s 64", "ib_send_lat -p PORT -s 64",
		 "ib_send_lat -p PORT -s 64 ADDR"},
		{"ibv_rc_pingpong -e", "ibv_rc_pingpong -g 1 -p PORT -e",
		 "ibv_rc_pingpong -g 1 -p PORT -e ADDR"},
		{"qperf rc_lat", "qperf -lp PORT",
		 "qperf -lp PORT ADDR rc_lat"},
		{"rping", "rping -s -a ADDR -p PORT -C 100",
		 "rping -c -a ADDR -p PORT -C 100"},
		{"rping -C 5", "rping -s -a ADDR -p PORT -C 5",
		 "rping -c -a ADDR -p PORT -C 5"},
		{"rdma_server", "rdma_server -p PORT",
		 "rdma_client -s ADDR -p PORT"},
		{"./rdma_server", "./rdma_server -p PORT",
		 "./rdma_client -s ADDR -p PORT"},
		{"/opt/x/rdma_xserver -c rc",
		 "/opt/x/rdma_xserver -p PORT -c rc",
		 "/opt/x/rdma_xclient -s ADDR -p PORT -c rc"},
		{"../ib_write_bw", "../ib_write_bw -p PORT",
		 "../ib_write_bw -p PORT ADDR"},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		assert_string_equal(argv_of(true, rows[i].user),
				    rows[i].server);
		assert_string_equal(argv_of(false, rows[i].user),
				    rows[i].client);
	}
}

static void the_options_are_those_of_the_tools_release(void **state)
{
	static const char older[] = "\t[-s server_address]\n",
			  newer[] = "\t-C controller_address\n";

	assert_string_equal(argv_by_usage(true, "cmtime -c 9", older),
			    "cmtime -b ADDR -p PORT -c 9");
	assert_string_equal(argv_by_usage(false, "cmtime -c 9", older),
			    "cmtime -s ADDR -p PORT -c 9");
	assert_string_equal(argv_by_usage(true, "cmtime -c 9", newer),
			    "cmtime -b ADDR -C ADDR -p PORT -L -c 9");
	assert_string_equal(argv_by_usage(false, "cmtime -c 9", newer),
			    "cmtime -b ADDR -C ADDR -p PORT -c 9");
	assert_string_equal(argv_by_usage(true, "rping", newer),
			    "rping -s -a ADDR -p PORT -C 100");
}

static void a_path_that_is_too_long_has_no_client(void **state)
{
	char path[8];

	assert_null(tool_client(tool_find("rdma_server"), "/usr/rdma_server",
				path, sizeof(path)));
	assert_string_equal(tool_client(tool_find("rping"), "/usr/bin/rping",
					path, sizeof(path)),
			    "/usr/bin/rping");
}

static void an_option_that_the_user_gave_is_not_given_twice(void **state)
{
	assert_string_equal(argv_of(true, "ib_write_bw -p 7"),
			    "ib_write_bw -p 7");
	assert_string_equal(argv_of(true, "ib_write_bw --port=7"),
			    "ib_write_bw --port=7");
	assert_string_equal(argv_of(false, "ibv_rc_pingpong -g 3"),
			    "ibv_rc_pingpong -p PORT -g 3 ADDR");
	assert_string_equal(argv_of(false, "ibv_rc_pingpong --gid-idx=3 -p7"),
			    "ibv_rc_pingpong --gid-idx=3 -p7 ADDR");
}

static void a_tool_is_found_by_its_last_name(void **state)
{
	assert_non_null(tool_find("/usr/bin/ib_atomic_lat"));
	assert_null(tool_find("/usr/bin/ib_write_bw/ls"));
	assert_null(tool_find("ib_bw"));
}

static void too_many_words_are_refused(void **state)
{
	static char name[] = "ib_write_bw";
	char *user[] = {name, NULL};
	const char *out[4];

	assert_int_equal(tool_argv(tool_find(name), false, user, "A", "P", out,
				   TEST_COUNT(out)),
			 -1);
}

static int find_in(const char *folders, char *path)
{
	assert_int_equal(setenv("PATH", folders, 1), 0);
	return launch_find("adverb-found", path);
}

/* As with execvp, an empty name in PATH is the working directory, and a file
 * that may not be executed does not end the search.  Unlike with execvp,
 * -EACCES is about a file of this name: neither a folder of this name nor a
 * folder of PATH that may not be searched gives that error. */
static void a_program_is_found_as_execvp_finds_it(void **state)
{
	static const char *const here[] = {"", ":/nowhere",
					   "/nowhere:", "/nowhere::/bin"};
	char folder[] = "/tmp/adverb-path-XXXXXX", path[PATH_MAX];
	int fd;

	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(mkdir("other", 0700), 0);
	assert_int_equal(mkdir("other/adverb-found", 0700), 0);
	fd = open("adverb-found", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
		assert_int_equal(find_in(here[i], path), 0);
		assert_string_equal(path, "./adverb-found");
	}
	assert_int_equal(find_in("other:", path), 0);
	assert_int_equal(find_in("other:/nowhere", path), -ENOENT);
	assert_int_equal(launch_find("other/adverb-found", path), -EISDIR);
	assert_int_equal(fchmod(fd, 0600), 0);
	assert_int_equal(find_in(":/nowhere", path), -EACCES);
	assert_int_equal(chmod("other", 0600), 0);
	assert_int_equal(find_in("other:/nowhere", path), -ENOENT);
	assert_int_equal(find_in("other:", path), -EACCES);
	assert_int_equal(chmod("other", 0700), 0);
	assert_int_equal(find_in("/nowhere", path), -ENOENT);
	close(fd);
	unlink("adverb-found");
	rmdir("other/adverb-found");
	rmdir("other");
	assert_int_equal(chdir("/"), 0);
	rmdir(folder);
}

/* A side whose program has ended stays a zombie until side_fini has killed the
 * side's process group.  Until then no other process group gets the side's ID.
 */
static void a_side_keeps_its_process_id_until_its_group_is_killed(void **state)
{
	static const char *const argv[] = {"/bin/sh", "-c", "exit 3", NULL};
	static struct launch l;
	struct side s;
	siginfo_t info;

	assert_int_equal(side_start(&s, "server", &l, argv), 0);
	assert_int_equal(waitid(P_PID, (id_t)s.pid, &info, WEXITED | WNOWAIT),
			 0);
	side_look(&s);
	assert_true(s.ended && !side_is_running(&s));
	assert_int_equal(s.status, 3);
	assert_int_equal(kill(s.pid, 0), 0);
	side_fini(&s);
	assert_int_equal(kill(s.pid, 0), -1);
	assert_int_equal(errno, ESRCH);
	side_fini(&s);
}

/* Makes sure that no further socket can be bound to the port while this process
 * lives. */
static void use_port(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((in_port_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* an error: another process has the port already */
	if (!bind(fd, (struct sockaddr *)&at, sizeof(at)))
		listen(fd, 1);
}

/* Returns the result of listen_port_get in this process, which may then open
 * only 3 more descriptors.  The first 32 ports that the function tries are in
 * use. */
static int reserve_behind_used_ports(void)
{
	struct rlimit limit;
	int next;

	for (int i = 0; i < 32; i++)
		use_port(20000 + (getpid() % 8000 + i) % 8000);
	next = dup(STDIN_FILENO);
	close(next);
	limit.rlim_cur = limit.rlim_max = (rlim_t)next + 3;
	if (next < 0 || setrlimit(RLIMIT_NOFILE, &limit))
		return -errno;
	return listen_port_get();
}

static void a_port_in_use_takes_no_descriptor(void **state)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(reserve_behind_used_ports() > 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_tool_gets_the_flags_it_needs),
		cmocka_unit_test(the_options_are_those_of_the_tools_release),
		cmocka_unit_test(a_path_that_is_too_long_has_no_client),
		cmocka_unit_test(
			an_option_that_the_user_gave_is_not_given_twice),
		cmocka_unit_test(a_tool_is_found_by_its_last_name),
		cmocka_unit_test(too_many_words_are_refused),
		cmocka_unit_test(a_program_is_found_as_execvp_finds_it),
		cmocka_unit_test(
			a_side_keeps_its_process_id_until_its_group_is_killed),
		cmocka_unit_test(a_port_in_use_takes_no_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
