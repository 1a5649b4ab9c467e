/* SPDX-License-Identifier: BSD-2-Clause */
/* util/walk: a path leads to the file that the kernel would open, and a path
 * that another user can change is refused.  test_runtime_tree.c tests paths to
 * folders. */
#include "test.h"

#include "remove_tree.h"
#include "util/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

/* the exit status if no seccomp filter can be installed; no errno has this
 * value */
enum { REFUSED = 255 };

static char base[64], why[128];
static struct walk w;

static int set_up(void **state)
{
	umask(022);
	strcpy(base, "/tmp/adverb-walk-XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int tear_down(void **state)
{
	return remove_tree(base);
}

/* Returns the path of `name` below base.  The next call but one overwrites the
 * result. */
static const char *path_of(const char *name)
{
	static char path[2][128];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", base, name);
	return path[turn];
}

static void make_file(const char *name)
{
	assert_int_equal(close(open(path_of(name), O_CREAT | O_CLOEXEC, 0600)),
			 0);
}

/* Walks to a file, and leaves the walk open.  Returns the result of walk_file.
 */
static int reach_file(const char *path)
{
	why[0] = '\0';
	w = (struct walk){.subject = "it",
			  .why = why,
			  .room = sizeof(why),
			  .doubts_system = true,
			  .fd = -1};
	return walk_file(&w, path);
}

static void expect_reached(const char *path, const char *file)
{
	struct stat want, got;
	int fd = reach_file(path);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(stat(file, &want), 0);
	assert_true(want.st_ino == got.st_ino && want.st_dev == got.st_dev);
	close(fd);
	walk_end(&w);
}

/* Only a refusal, -EPERM, has a reason. */
static void expect_refused(const char *path, const char *reason)
{
	assert_int_equal(reach_file(path), -EPERM);
	assert_non_null(strstr(why, reason));
	walk_end(&w);
}

static void expect_error(const char *path, int err)
{
	assert_int_equal(reach_file(path), err);
	assert_string_equal(why, "");
	walk_end(&w);
}

/* Fails unless the walk ends with -ENOENT, has `name` as the name of the
 * missing file, and has reached `folder`.  name "": the walk has no name,
 * because a folder is missing.  folder "": any folder will do. */
static void expect_missing(const char *path, const char *name,
			   const char *folder)
{
	struct stat s;

	assert_int_equal(reach_file(path), -ENOENT);
	assert_string_equal(w.name, name);
	if (*folder) {
		assert_int_equal(stat(folder, &s), 0);
		assert_int_equal(w.at.st_ino, s.st_ino);
	}
	walk_end(&w);
}

static void a_file_is_reached_by_its_path_and_by_links(void **state)
{
	assert_int_equal(mkdir(path_of("in"), 0755), 0);
	make_file("in/file");
	assert_int_equal(symlink("in", path_of("link")), 0);
	assert_int_equal(symlink("link/file", path_of("short")), 0);
	expect_reached(path_of("in/file"), path_of("in/file"));
	expect_reached(path_of("link/../in//file"), path_of("in/file"));
	expect_reached(path_of("short"), path_of("in/file"));
	assert_int_equal(chdir(base), 0);
	expect_reached("in/file", path_of("in/file"));
	assert_int_equal(chdir("/"), 0);
	expect_reached("dev/null", "/dev/null");
}

static void a_missing_file_has_its_folder_and_name(void **state)
{
	assert_int_equal(mkdir(path_of("in"), 0755), 0);
	assert_int_equal(symlink("in", path_of("link")), 0);
	assert_int_equal(symlink("in/new", path_of("short")), 0);
	assert_int_equal(symlink("none/new", path_of("broken")), 0);
	expect_missing(path_of("link/new"), "new", path_of("in"));
	expect_missing(path_of("short"), "new", path_of("in"));
	expect_missing(path_of("none/new"), "", "");
	/* the link's own name is not taken for that of the missing file */
	expect_missing(path_of("broken"), "", "");
}

static void a_path_that_names_no_file_is_an_error(void **state)
{
	make_file("file");
	assert_int_equal(symlink("round", path_of("round")), 0);
	expect_error(base, -EISDIR);
	expect_error("/", -EISDIR);
	expect_error("", -EISDIR);
	expect_error(path_of("file/"), -ENOTDIR);
	expect_error(path_of("file/more"), -ENOTDIR);
	expect_error(path_of("round"), -ELOOP);
}

/* walk_file has the kernel follow a link in /proc/PID/fd, because the text of
 * the link need not be the path of the open file. */
static void a_descriptor_is_reached_by_its_link(void **state)
{
	char path[64];
	int fd;

	make_file("file");
	fd = open(path_of("file"), O_RDWR | O_CLOEXEC);
	assert_int_equal(rename(path_of("file"), path_of("moved")), 0);
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	expect_reached(path, path_of("moved"));
	close(fd);
	fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	expect_error(path, -EISDIR);
	close(fd);
}

static void a_path_that_others_can_change_is_not_walked(void **state)
{
	assert_int_equal(mkdir(path_of("open"), 0755), 0);
	make_file("open/file");
	assert_int_equal(chmod(path_of("open"), 0757), 0);
	expect_refused(path_of("open/file"),
		       "it lies in a folder that others can write");
	assert_int_equal(chmod(path_of("open"), 01757), 0);
	expect_reached(path_of("open/file"), path_of("open/file"));
}

static void the_group_that_is_named_may_write(void **state)
{
	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	make_file("file");
	assert_int_equal(chmod(base, 0775), 0);
	assert_int_equal(chown(base, 0, 7), 0);
	expect_refused(path_of("file"), "folder that others can write");
	w = (struct walk){.subject = "it",
			  .why = why,
			  .room = sizeof(why),
			  .group = 7,
			  .fd = -1};
	assert_int_equal(close(walk_file(&w, path_of("file"))), 0);
	walk_end(&w);
}

static void another_users_folder_or_link_is_not_walked(void **state)
{
	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	assert_int_equal(mkdir(path_of("theirs"), 0755), 0);
	make_file("theirs/file");
	make_file("file");
	assert_int_equal(chown(path_of("theirs"), 1, 1), 0);
	expect_refused(path_of("theirs/file"), "in another user's folder");
	assert_int_equal(symlink("file", path_of("link")), 0);
	expect_reached(path_of("link"), path_of("file"));
	assert_int_equal(lchown(path_of("link"), 1, 1), 0);
	expect_refused(path_of("link"), "behind another user's link");
}

/* In the child: takes these users, and looks whether base may be written.
 * Returns 0 if the effective user decides that. */
static int check_as(uid_t real, uid_t effective)
{
	w = (struct walk){.subject = "it",
			  .why = why,
			  .room = sizeof(why),
			  .may_follow = true,
			  .fd = -1};
	if (walk_along(&w, base) || setresuid(real, effective, 0))
		return 1;
	return walk_check_writable(&w) != (effective ? -EACCES : 0);
}

/* A program of root may take another user's rights for a while (seteuid). */
static void the_effective_user_decides_what_may_be_written(void **state)
{
	static const uid_t users[][2] = {{0, 1}, {1, 0}, {0, 0}, {1, 1}};

	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	assert_int_equal(chmod(base, 0755), 0);
	for (size_t i = 0; i < 4; i++) {
		pid_t pid = fork();
		int status;

		if (!pid)
			_exit(check_as(users[i][0], users[i][1]));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* In the child: has the kernel refuse to tell the types of file systems, and
 * returns the error of a walk, a positive errno; REFUSED: no seccomp filter can
 * be installed. */
static int walk_without_types(void)
{
	static struct sock_filter refuse[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fstatfs, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(refuse) / sizeof(*refuse),
					  refuse};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return REFUSED;
	w = (struct walk){
		.subject = "it", .why = why, .room = sizeof(why), .fd = -1};
	return -walk_along(&w, base);
}

/* A file system of unknown type may be a FUSE file system of another user. */
static void a_file_system_of_unknown_type_is_not_entered(void **state)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(walk_without_types());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == REFUSED)
		SKIP_FOR("no seccomp filter can be installed here");
	assert_int_equal(WEXITSTATUS(status), EIO);
}

/* walk_along follows the links of root and of the caller; walk_into follows no
 * link, also after walk_along has failed. */
static void a_relative_path_that_fails_leaves_links_unfollowed(void **state)
{
	char was[PATH_MAX];

	assert_non_null(getcwd(was, sizeof(was)));
	assert_int_equal(mkdir(path_of("gone"), 0700), 0);
	assert_int_equal(symlink(base, path_of("link")), 0);
	assert_int_equal(chdir(path_of("gone")), 0);
	assert_int_equal(rmdir(path_of("gone")), 0);
	w = (struct walk){
		.subject = "it", .why = why, .room = sizeof(why), .fd = -1};
	assert_int_equal(walk_along(&w, base), 0);
	assert_int_equal(walk_along(&w, "file"), -ENOENT);
	assert_int_equal(walk_into(&w, "link"), -EPERM);
	walk_end(&w);
	assert_int_equal(chdir(was), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_file_is_reached_by_its_path_and_by_links),
		T(a_missing_file_has_its_folder_and_name),
		T(a_path_that_names_no_file_is_an_error),
		T(a_descriptor_is_reached_by_its_link),
		T(a_path_that_others_can_change_is_not_walked),
		T(the_group_that_is_named_may_write),
		T(the_effective_user_decides_what_may_be_written),
		T(another_users_folder_or_link_is_not_walked),
		T(a_relative_path_that_fails_leaves_links_unfollowed),
		T(a_file_system_of_unknown_type_is_not_entered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
