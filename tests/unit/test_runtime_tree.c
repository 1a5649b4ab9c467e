/* SPDX-License-Identifier: BSD-2-Clause */
/* util/runtime_tree: the synthesized tree is made in a folder that no other
 * user can change, and no folder or link of another user leads there. */
#include "test.h"

#include "remove_tree.h"
#include "util/runtime_tree.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[64];
static struct runtime_tree tree;
/* the process has more rights than its caller */
static bool is_secure;

static int set_up(void **state)
{
	unsetenv("ADVERB_SYSFS");
	unsetenv("ADVERB_RUNTIME");
	umask(022);
	is_secure = false;
	strcpy(base, "/tmp/adverb-tree-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	return setenv("XDG_RUNTIME_DIR", base, 1);
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

/* Returns the path of the folder of adverb with this number. */
static const char *own_folder(int i)
{
	char name[64];

	snprintf(name, sizeof(name), i ? "adverb-%u-%d" : "adverb-%u",
		 geteuid(), i);
	return path_of(name);
}

static void expect_tree_in(const char *folder)
{
	char want[160];
	struct stat ns, s;
	int fd;

	assert_int_equal(stat("/proc/self/ns/net", &ns), 0);
	snprintf(want, sizeof(want), "%s/sysfs-%ju", folder,
		 (uintmax_t)ns.st_ino);
	assert_int_equal(runtime_tree_find(&tree), -ENOENT);
	assert_string_equal(tree.path, want);
	assert_int_equal(access(want, F_OK), -1);
	fd = runtime_tree_make(&tree);
	assert_true(fd >= 0);
	assert_string_equal(tree.path, want);
	assert_int_equal(fstat(fd, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0700);
	close(fd);
	assert_int_equal(runtime_tree_find(&tree), 0);
}

static void expect_none(int err, const char *why)
{
	assert_int_equal(runtime_tree_find(&tree), err);
	if (!strstr(tree.why, why))
		fail_msg("it says: %s", tree.why);
	assert_int_equal(runtime_tree_make(&tree), err);
}

static void the_tree_is_made_in_the_sessions_folder(void **state)
{
	struct stat s;

	expect_tree_in(own_folder(0));
	assert_int_equal(stat(own_folder(0), &s), 0);
	assert_int_equal(s.st_mode & 07777, 0700);
}

/* The roots of two user namespaces have the same user ID, and so the same names
 * of folders. */
static void a_name_that_is_not_ours_is_passed_over(void **state)
{
	assert_int_equal(symlink("/", own_folder(0)), 0);
	assert_int_equal(symlink(base, own_folder(1)), 0);
	assert_int_equal(close(open(own_folder(2), O_CREAT | O_CLOEXEC, 0600)),
			 0);
	assert_int_equal(mkdir(own_folder(3), 0700), 0);
	assert_int_equal(chmod(own_folder(3), 0777), 0);
	expect_tree_in(own_folder(4));
}

static void with_no_name_left_the_next_folder_is_taken(void **state)
{
	for (int i = 0; i < RUNTIME_TREE_NAMES; i++)
		assert_int_equal(symlink(base, own_folder(i)), 0);
	assert_true(runtime_tree_find(&tree) != -EPERM);
	assert_ptr_not_equal(strstr(tree.path, base), tree.path);
}

static void an_unsafe_or_missing_session_folder_is_not_used(void **state)
{
	assert_int_equal(chmod(base, 0770), 0);
	runtime_tree_find(&tree);
	assert_ptr_not_equal(strstr(tree.path, base), tree.path);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/nowhere", 1), 0);
	runtime_tree_find(&tree);
	assert_ptr_not_equal(strstr(tree.path, "/nowhere"), tree.path);
}

static void a_chosen_folder_is_made(void **state)
{
	setenv("ADVERB_RUNTIME", path_of("a/b"), 1);
	expect_tree_in(path_of("a/b"));
	setenv("ADVERB_SYSFS", path_of("a/tree"), 1);
	assert_int_equal(runtime_tree_find(&tree), -ENOENT);
	close(runtime_tree_make(&tree));
	assert_int_equal(runtime_tree_find(&tree), 0);
	assert_string_equal(tree.path, path_of("a/tree"));
}

static void a_chosen_tree_does_not_move_the_runtime_folder(void **state)
{
	struct stat s;

	setenv("ADVERB_SYSFS", path_of("a/tree"), 1);
	assert_int_equal(runtime_tree_folder(&tree, false), -ENOENT);
	assert_string_equal(tree.path, own_folder(0));
	assert_int_equal(access(tree.path, F_OK), -1);
	assert_int_equal(runtime_tree_folder(&tree, true), 0);
	assert_string_equal(tree.path, own_folder(0));
	assert_int_equal(stat(tree.path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0700);
	setenv("ADVERB_RUNTIME", path_of("run"), 1);
	assert_int_equal(runtime_tree_folder(&tree, true), 0);
	assert_string_equal(tree.path, path_of("run"));
	assert_int_equal(access(path_of("a"), F_OK), -1);
	assert_int_equal(chmod(path_of("run"), 0777), 0);
	assert_int_equal(runtime_tree_folder(&tree, false), -EPERM);
	unsetenv("ADVERB_SYSFS");
	unsetenv("ADVERB_RUNTIME");
}

/* On some systems /tmp is a link. */
static void a_link_of_ours_in_the_chosen_path_is_followed(void **state)
{
	assert_int_equal(mkdir(path_of("real"), 0755), 0);
	assert_int_equal(symlink("real", path_of("link")), 0);
	assert_int_equal(symlink(path_of("link"), path_of("again")), 0);
	setenv("ADVERB_RUNTIME", path_of("again"), 1);
	expect_tree_in(path_of("again"));
	assert_int_equal(access(path_of("real"), F_OK), 0);
	assert_int_equal(symlink("round", path_of("round")), 0);
	setenv("ADVERB_RUNTIME", path_of("round"), 1);
	expect_none(-ELOOP, "cannot be written");
}

static void the_tree_is_no_link(void **state)
{
	struct stat ns;
	char name[64];

	assert_int_equal(stat("/proc/self/ns/net", &ns), 0);
	snprintf(name, sizeof(name), "sysfs-%ju", (uintmax_t)ns.st_ino);
	assert_int_equal(mkdir(path_of("elsewhere"), 0700), 0);
	assert_int_equal(symlink(path_of("elsewhere"), path_of(name)), 0);
	setenv("ADVERB_RUNTIME", base, 1);
	expect_none(-EPERM, "lies behind a link");
}

static void each_host_of_a_fabric_has_a_tree(void **state)
{
	static const char *const hosts[] = {"", "H1", "H2"};
	char paths[3][RUNTIME_TREE_PATH];

	setenv("ADVERB_FABRIC", "/run/fabric", 1);
	for (int i = 0; i < 3; i++) {
		setenv("ADVERB_FABRIC_HOST", hosts[i], 1);
		close(runtime_tree_make(&tree));
		assert_int_equal(runtime_tree_find(&tree), 0);
		strcpy(paths[i], tree.path);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(paths[i], paths[k]);
	}
	unsetenv("ADVERB_FABRIC_HOST");
	assert_int_equal(runtime_tree_find(&tree), 0);
	assert_string_equal(tree.path, paths[0]);
	/* the same characters, cut elsewhere into path and host name */
	setenv("ADVERB_FABRIC", "/run/fabricH", 1);
	setenv("ADVERB_FABRIC_HOST", "1", 1);
	assert_int_equal(runtime_tree_find(&tree), -ENOENT);
	unsetenv("ADVERB_FABRIC");
	unsetenv("ADVERB_FABRIC_HOST");
	assert_int_equal(runtime_tree_find(&tree), -ENOENT);
}

static void a_folder_that_others_write_holds_no_tree(void **state)
{
	assert_int_equal(mkdir(path_of("open"), 0777), 0);
	assert_int_equal(chmod(path_of("open"), 0777), 0);
	setenv("ADVERB_RUNTIME", path_of("open/mine"), 1);
	expect_none(-EPERM, "in a folder that others can write");
	setenv("ADVERB_SYSFS", path_of("open"), 1);
	expect_none(-EPERM, "can be written by others");
	unsetenv("ADVERB_SYSFS");
	assert_int_equal(chmod(path_of("open"), 01777), 0);
	expect_tree_in(path_of("open/mine"));
}

/* Only root can give a file to another user. */
static void another_users_folder_or_link_holds_no_tree(void **state)
{
	if (geteuid() || chown(base, 1, 1))
		SKIP_FOR(ONE_USER);
	assert_int_equal(chown(base, 0, 0), 0);
	assert_int_equal(mkdir(path_of("theirs"), 0755), 0);
	assert_int_equal(chown(path_of("theirs"), 1, 1), 0);
	setenv("ADVERB_RUNTIME", path_of("theirs/mine"), 1);
	expect_none(-EPERM, "in another user's folder");
	setenv("ADVERB_SYSFS", path_of("theirs"), 1);
	expect_none(-EPERM, "is another user's");
	unsetenv("ADVERB_SYSFS");
	assert_int_equal(symlink("/tmp", path_of("link")), 0);
	assert_int_equal(lchown(path_of("link"), 1, 1), 0);
	setenv("ADVERB_RUNTIME", path_of("link/mine"), 1);
	expect_none(-EPERM, "behind another user's link");
	unsetenv("ADVERB_RUNTIME");
	assert_int_equal(mkdir(own_folder(0), 0700), 0);
	assert_int_equal(chown(own_folder(0), 1, 1), 0);
	expect_tree_in(own_folder(1));
}

/* Answers one request, as if each name were a folder of this user.  Returns the
 * bytes of the answer in body; 0: the request is refused. */
static size_t answer_fuse(const struct fuse_in_header *q, uint8_t *body)
{
	const struct fuse_attr attr = {.ino = q->nodeid,
				       .mode = S_IFDIR | 0700,
				       .nlink = 2,
				       .uid = geteuid(),
				       .gid = getegid()};
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 12, .max_write = 4096};
	struct fuse_entry_out entry = {.nodeid = q->nodeid + 1, .attr = attr};
	struct fuse_attr_out same = {.attr = attr};

	entry.attr.ino = entry.nodeid;
	switch (q->opcode) {
	case FUSE_INIT:
		memcpy(body, &init, 24); /* the size in that version */
		return 24;
	case FUSE_LOOKUP:
		memcpy(body, &entry, sizeof(entry));
		return sizeof(entry);
	case FUSE_GETATTR:
		memcpy(body, &same, sizeof(same));
		return sizeof(same);
	default:
		return 0;
	}
}

static void serve_fuse(int fd)
{
	static uint8_t in[65536], out[512];
	struct fuse_in_header q;
	ssize_t n;

	while ((n = read(fd, in, sizeof(in))) >= (ssize_t)sizeof(q)) {
		struct fuse_out_header a;
		size_t bytes;

		memcpy(&q, in, sizeof(q));
		if (q.opcode == FUSE_FORGET)
			continue;
		bytes = answer_fuse(&q, out + sizeof(a));
		a = (struct fuse_out_header){
			.len = (uint32_t)(sizeof(a) + bytes),
			.error = bytes ? 0 : -ENOSYS,
			.unique = q.unique};
		memcpy(out, &a, sizeof(a));
		if (write(fd, out, a.len) < 0)
			break;
	}
	_exit(0);
}

/* Mounts a file system on `folder`, with the options of user `id`.  The process
 * *server serves the file system.  Returns false if the kernel refuses the
 * mount, or the process cannot be made. */
static bool mount_fuse(const char *folder, unsigned id, pid_t *server)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[96];

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", fd,
		 id, id);
	if (fd < 0 ||
	    mount("test", folder, "fuse", MS_NOSUID | MS_NODEV, options))
		return false;
	*server = fork();
	if (!*server)
		serve_fuse(fd);
	close(fd);
	return *server > 0;
}

/* Returns whether a tree is taken from a file system that user `id` serves in
 * the place of our folder; -1: no such file system can be mounted. */
static int takes_fuse(unsigned id)
{
	int status, bad;
	pid_t pid = fork(), server;

	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		return WEXITSTATUS(status) == 77 ? -1 : WEXITSTATUS(status);
	}
	if (unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mkdir(own_folder(0), 0700) ||
	    !mount_fuse(own_folder(0), id, &server))
		_exit(77);
	alarm(TEST_WAIT_S);
	bad = runtime_tree_find(&tree);
	kill(server, SIGKILL);
	_exit(!bad &&
	      !strncmp(tree.path, own_folder(0), strlen(own_folder(0))) &&
	      tree.path[strlen(own_folder(0))] == '/');
}

/* The process that serves a FUSE file system chooses the owner of each file. */
static void a_file_system_of_another_users_process_holds_no_tree(void **state)
{
	int takes = geteuid() ? -1 : takes_fuse(1);

	if (geteuid())
		SKIP_FOR(ONE_USER);
	if (takes < 0)
		SKIP_FOR("this root mounts no FUSE file system");
	assert_int_equal(takes, 0);
	assert_int_equal(rmdir(own_folder(0)), 0);
	assert_int_equal(takes_fuse(0), 1);
}

/* Returns a path below base that has `bytes` bytes, in folders of at most 60
 * bytes. */
static const char *long_path(size_t bytes)
{
	static char path[400];
	size_t i = strlen(base);

	memcpy(path, base, i);
	for (size_t n = 0; i < bytes; i++, n++)
		path[i] = n % 61 ? 'a' : '/';
	path[bytes] = '\0';
	return path;
}

/* If a tree cannot be made, no folder on the way to the tree is made. */
static void a_path_that_is_too_long_holds_no_tree(void **state)
{
	static const char *const names[] = {"ADVERB_RUNTIME", "ADVERB_SYSFS"};

	for (size_t i = 0; i < TEST_COUNT(names); i++) {
		setenv(names[i], long_path(350), 1);
		assert_int_equal(runtime_tree_make(&tree), -ENAMETOOLONG);
		assert_non_null(strstr(tree.why, "File name too long"));
		/* the path of the tree does not fit into tree.path */
		setenv(names[i], long_path(RUNTIME_TREE_PATH - 3 + (int)i * 3),
		       1);
		assert_int_equal(runtime_tree_make(&tree), -ENAMETOOLONG);
		assert_int_equal(rmdir(base), 0);
		assert_int_equal(mkdir(base, 0700), 0);
		unsetenv(names[i]);
	}
	setenv("ADVERB_SYSFS", long_path(RUNTIME_TREE_PATH - 1), 1);
	assert_true(close(runtime_tree_make(&tree)) == 0);
	assert_string_equal(tree.path, long_path(RUNTIME_TREE_PATH - 1));
}

static void a_session_folder_with_too_long_a_path_is_not_used(void **state)
{
	const char *session = long_path(RUNTIME_TREE_PATH - 5);
	char path[RUNTIME_TREE_PATH];

	setenv("ADVERB_RUNTIME", session, 1);
	assert_int_equal(runtime_tree_folder(&tree, true), 0);
	unsetenv("ADVERB_RUNTIME");
	setenv("XDG_RUNTIME_DIR", session, 1);
	runtime_tree_find(&tree);
	snprintf(path, sizeof(path), "%s", tree.path);
	assert_null(strstr(path, base));
}

/* the error of mkdirat; 0: mkdirat works */
static int mkdir_error;
/* how often mkdirat was called in base for a name other than the first name */
static int numbered;

/* Replaces libc's mkdirat.  Fails if mkdir_error is set. */
int mkdirat(int fd, const char *name, mode_t mode)
{
	struct stat folder, at;

	if (!mkdir_error)
		return (int)syscall(SYS_mkdirat, fd, name, mode);
	if (!stat(base, &folder) && !fstat(fd, &at) &&
	    folder.st_ino == at.st_ino)
		numbered += strcmp(name, strrchr(own_folder(0), '/') + 1) != 0;
	errno = mkdir_error;
	return -1;
}

/* A file system or a sandbox may permit no new folders. */
static void
a_folder_that_the_kernel_forbids_is_not_one_of_another_user(void **state)
{
	mkdir_error = EPERM;
	runtime_tree_make(&tree);
	mkdir_error = 0;
	assert_int_equal(numbered, 0);
	assert_null(strstr(tree.why, "no name from"));
}

/* Makes base the root of the file system of this process, in which there is
 * none of the folders that are tried after that of XDG_RUNTIME_DIR. */
static bool root_at_base(void)
{
	setenv("XDG_RUNTIME_DIR", "/", 1);
	return (!geteuid() || !unshare(CLONE_NEWUSER)) && !chroot(base) &&
	       !chdir("/");
}

static int is_told_of_a_full_disk(void)
{
	if (!root_at_base())
		return 77;
	mkdir_error = ENOSPC;
	return runtime_tree_make(&tree) == -ENOSPC &&
	       strstr(tree.why, "/adverb-") == tree.why + 1 &&
	       strstr(tree.why, "No space left on device");
}

/* Where no other folder can hold the tree, the user reads of the one that is
 * full, and not of those that are missing. */
static void a_full_disk_is_the_reason(void **state)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		_exit(is_told_of_a_full_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP_FOR("this user cannot change the root of a process");
	assert_int_equal(WEXITSTATUS(status), 1);
	assert_string_equal(runtime_tree_remedy(ENOSPC), "make room there");
}

/* Looks for the tree with `count` free descriptors. */
static int make_with_descriptors(rlim_t count)
{
	int first = open("/", O_RDONLY | O_CLOEXEC), err;
	struct rlimit was, few;

	assert_int_equal(close(first), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){(rlim_t)first + count, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	err = runtime_tree_make(&tree);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	return err;
}

/* A process without free descriptors takes no other folder, either. */
static void too_few_descriptors_are_the_reason(void **state)
{
	rlim_t count = 0;
	int fd;

	while ((fd = make_with_descriptors(count)) < 0) {
		assert_int_equal(fd, -EMFILE);
		assert_non_null(strstr(tree.why, "Too many open files"));
		assert_ptr_equal(strstr(tree.why, base), tree.why);
		assert_true(++count < 8);
	}
	close(fd);
	assert_true(count > 1);
	assert_ptr_equal(strstr(tree.path, own_folder(0)), tree.path);
	assert_string_equal(runtime_tree_remedy(EMFILE), "raise ulimit -n");
}

/* Replaces libc's getauxval. */
unsigned long getauxval(unsigned long type)
{
	unsigned long (*next)(unsigned long type);

	if (type == AT_SECURE)
		return is_secure;
	*(void **)&next = dlsym(RTLD_NEXT, "getauxval");
	return next(type);
}

/* Such a program reads no variable, so none is the remedy. */
static void a_program_with_more_rights_is_told_no_variable(void **state)
{
	is_secure = true;
	expect_none(-EPERM, "more rights than its caller");
	assert_null(strstr(runtime_tree_remedy(EPERM), "ADVERB_"));
	is_secure = false;
	assert_non_null(strstr(runtime_tree_remedy(EPERM), "ADVERB_RUNTIME"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_folder_that_the_kernel_forbids_is_not_one_of_another_user),
		T(a_full_disk_is_the_reason),
		T(too_few_descriptors_are_the_reason),
		T(a_program_with_more_rights_is_told_no_variable),
		T(the_tree_is_made_in_the_sessions_folder),
		T(a_name_that_is_not_ours_is_passed_over),
		T(with_no_name_left_the_next_folder_is_taken),
		T(an_unsafe_or_missing_session_folder_is_not_used),
		T(a_chosen_folder_is_made),
		T(a_chosen_tree_does_not_move_the_runtime_folder),
		T(a_link_of_ours_in_the_chosen_path_is_followed),
		T(the_tree_is_no_link),
		T(each_host_of_a_fabric_has_a_tree),
		T(a_folder_that_others_write_holds_no_tree),
		T(another_users_folder_or_link_holds_no_tree),
		T(a_file_system_of_another_users_process_holds_no_tree),
		T(a_path_that_is_too_long_holds_no_tree),
		T(a_session_folder_with_too_long_a_path_is_not_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
