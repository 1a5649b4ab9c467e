/* SPDX-License-Identifier: BSD-2-Clause */
/* host/capture: a file gets no frame if another user owns the file, if another
 * user could have put the file in the place of the capture, or if the file has
 * other contents than a capture.  A pipe and an open descriptor get the capture
 * too. */
#include "captures.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "util/shared.h"

enum { FRAMES = 24, LONG = 4200, SIGNALS = 5 };

static void open_again(void)
{
	capture_open(false);
}

static bool has_fixed_flags; /* the kernel denies F_SETFL */

/* Replaces libc's fcntl for the tested code. */
int fcntl(int fd, int command, ...)
{
	va_list more;
	long arg;

	va_start(more, command);
	arg = va_arg(more, long);
	va_end(more);
	if (has_fixed_flags && command == F_SETFL) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_fcntl, fd, command, arg);
}

static void a_file_that_cannot_be_made_blocking_is_refused(void **state)
{
	char text[300] = "";

	unsetenv("ADVERB_EXPLAIN");
	capture_close();
	setenv("ADVERB_PCAP", "/dev/null", 1);
	has_fixed_flags = true;
	assert_true(said_here(open_again, text, sizeof(text)));
	has_fixed_flags = false;
	assert_non_null(strstr(text, strerror(EPERM)));
	assert_false(capture_is_open());
}

/* Checks that `name` is not opened as a capture, and that a regular file of
 * that name keeps its size, `bytes`, when a frame is captured. */
static void expect_refused(const char *name, off_t bytes)
{
	struct stat s;

	setenv("ADVERB_EXPLAIN", "0", 1);
	capture_close();
	setenv("ADVERB_PCAP", name, 1);
	capture_open(false);
	assert_false(capture_is_open());
	capture_frame(&four_a, &four_b, (const uint8_t *)"x", 1, 0, 0, 64);
	/* if fs.protected_symlinks is 1, not even root follows another user's
	 * link in /tmp */
	if (!stat(name, &s) && S_ISREG(s.st_mode))
		assert_int_equal(s.st_size, bytes);
	unsetenv("ADVERB_EXPLAIN");
}

static void a_file_that_is_no_capture_of_ours_gets_no_frames(void **state)
{
	char other[sizeof(path) + 8];
	int fd;

	snprintf(other, sizeof(other), "%s.other", path);
	fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "a text", 6), 6);
	close(fd);
	expect_refused(other, 6);
	assert_int_equal(unlink(other), 0);
	/* a capture with a second hard link */
	assert_int_equal(link(path, other), 0);
	expect_refused(other, PREAMBLE);
	assert_int_equal(unlink(other), 0);
	expect_refused("/tmp", 0);
	expect_refused("/dev/urandom", 0);
}

static void a_file_of_another_user_gets_no_frames(void **state)
{
	char other[sizeof(path) + 8];

	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	snprintf(other, sizeof(other), "%s.other", path);
	assert_int_equal(symlink(path, other), 0);
	assert_int_equal(lchown(other, 1, 1), 0);
	expect_refused(other, PREAMBLE);
	read_capture();
	assert_int_equal(seen_bytes, PREAMBLE);
	assert_int_equal(unlink(other), 0);
	assert_int_equal(chown(path, 1, 1), 0);
	expect_refused(path, PREAMBLE);
}

static char folder[] = "/tmp/adverb-captures-XXXXXX";

/* Returns the path of a name in `folder`.  The path stays until the fourth call
 * after this one. */
static const char *in_folder(const char *name)
{
	static char paths[4][sizeof(folder) + 32];
	static int turn;
	char *to = paths[turn++ % 4];

	snprintf(to, sizeof(paths[0]), "%s/%s", folder, name);
	return to;
}

static void make_folder(void)
{
	strcpy(strrchr(folder, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(in_folder("in"), 0755), 0);
}

/* Captures into the file of this name from now on. */
static void capture_to(const char *name)
{
	capture_close();
	setenv("ADVERB_PCAP", name, 1);
	capture_open(false);
	assert_true(capture_is_open());
}

static void expect_captured(const char *name)
{
	struct stat s;

	capture_to(name);
	capture_close();
	assert_int_equal(stat(name, &s), 0);
	assert_int_equal(s.st_size, PREAMBLE);
	assert_int_equal(unlink(name), 0);
}

static void remove_folder(void)
{
	assert_int_equal(rmdir(in_folder("in")), 0);
	assert_int_equal(rmdir(folder), 0);
}

/* In a folder that others may write and that is not sticky, another user could
 * replace the capture, or the folder with the capture, by a link. */
static void a_folder_that_others_write_gets_no_capture(void **state)
{
	make_folder();
	assert_int_equal(chmod(folder, 0757), 0);
	expect_refused(in_folder("new"), 0);
	expect_refused(in_folder("in/new"), 0);
	assert_int_equal(access(in_folder("in/new"), F_OK), -1);
	assert_int_equal(chmod(folder, 01757), 0);
	expect_captured(in_folder("in/new"));
	expect_captured(in_folder("new"));
	remove_folder();
}

/* With a umask of 002 a user's own group may write to each folder. */
static void a_folder_of_ones_own_group_gets_a_capture(void **state)
{
	if (geteuid() != getegid())
		SKIP_FOR("this user has no group of the same number");
	make_folder();
	assert_int_equal(chmod(folder, 0775), 0);
	expect_captured(in_folder("in/new"));
	remove_folder();
}

static void another_users_folder_or_link_gets_no_capture(void **state)
{
	if (!test_can_be(1))
		SKIP_FOR(ONE_USER);
	make_folder();
	assert_int_equal(symlink("in", in_folder("link")), 0);
	expect_captured(in_folder("link/new"));
	assert_int_equal(lchown(in_folder("link"), 1, 1), 0);
	expect_refused(in_folder("link/new"), 0);
	assert_int_equal(access(in_folder("in/new"), F_OK), -1);
	assert_int_equal(chown(in_folder("in"), 1, 1), 0);
	expect_refused(in_folder("in/new"), 0);
	assert_int_equal(chown(in_folder("in"), 0, 1), 0);
	assert_int_equal(chmod(in_folder("in"), 0775), 0);
	expect_refused(in_folder("in/new"), 0);
	assert_int_equal(access(in_folder("in/new"), F_OK), -1);
	assert_int_equal(unlink(in_folder("link")), 0);
	remove_folder();
}

/* Makes a pipe, and captures into it. */
static void capture_to_pipe(int fds[2])
{
	char name[32];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	capture_to(name);
}

/* A name may lead to an open descriptor, as /dev/stdout does. */
static void a_descriptor_gets_the_capture(void **state)
{
	int fds[2];

	capture_to_pipe(fds);
	assert_int_equal(read(fds[0], seen, sizeof(seen)), PREAMBLE);
	capture_close();
	close(fds[0]);
	close(fds[1]);
}

static shared_u32 signals; /* how often the handler ran */

static void count_signal(int sig)
{
	(void)sig;
	shared_store(&signals, shared_own(&signals) + 1);
}

/* Reads a pipe to its end, but begins only after the writer, which waits for
 * room in the pipe, has got some signals. */
static void *read_late(void *fd)
{
	const uint32_t first = shared_load(&signals);
	ssize_t n;

	while (shared_load(&signals) - first < SIGNALS)
		usleep(1000);
	do {
		n = read(*(int *)fd, seen + seen_bytes,
			 sizeof(seen) - seen_bytes);
		seen_bytes += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	return NULL;
}

/* Has SIGALRM sent to the calling thread alone, each millisecond. */
static void set_alarm(int flags)
{
	const struct sigaction act = {.sa_handler = count_signal,
				      .sa_flags = flags};
	const struct itimerval each = {{0, 1000}, {0, 1000}};

	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &each, NULL), 0);
}

static void stop_alarm(void)
{
	const struct itimerval never = {{0, 0}, {0, 0}};

	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_true(signal(SIGALRM, SIG_IGN) != SIG_ERR);
}

static pthread_t start_reader(int *fd)
{
	sigset_t alarm, before;
	pthread_t reader;

	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &alarm, &before), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_late, fd), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	return reader;
}

/* A pipe holds 64 KiB, so the writer waits for the reader, and the program's
 * signals interrupt the writer. */
static void a_signal_loses_no_frame_in_a_full_pipe(void **state)
{
	static const uint8_t payload[LONG];

	for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
		size_t at = PREAMBLE;
		pthread_t reader;
		uint32_t bytes;
		int fds[2];

		capture_to_pipe(fds);
		seen_bytes = 0;
		reader = start_reader(&fds[0]);
		set_alarm(flags);
		for (int i = 0; i < FRAMES; i++)
			capture_frame(&four_a, &four_b, payload, LONG, 0, 0,
				      64);
		stop_alarm();
		assert_true(capture_is_open());
		capture_close();
		close(fds[1]);
		pthread_join(reader, NULL);
		close(fds[0]);
		for (int i = 0; i < FRAMES; i++)
			frame_at(at, &bytes, &at);
		assert_int_equal(at, seen_bytes);
	}
}

/* The reader closes its end of the pipe, as Wireshark does when the user ends
 * Wireshark.  SIGPIPE has its default action: a SIGPIPE would end this process.
 */
static void a_pipe_without_a_reader_ends_the_capture_alone(void **state)
{
	static const uint8_t payload[] = "0123456";
	int fds[2];

	assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
	capture_to_pipe(fds);
	close(fds[0]);
	capture_frame(&four_a, &four_b, payload, sizeof(payload), 0, 0, 64);
	assert_false(capture_is_open());
	capture_open(false);
	assert_false(capture_is_open());
	close(fds[1]);
}

static void a_capture_is_for_its_user_alone(void **state)
{
	struct stat s;

	capture_close();
	assert_int_equal(unlink(path), 0);
	umask(0);
	capture_open(false);
	umask(022);
	assert_true(capture_is_open());
	assert_int_equal(stat(path, &s), 0);
	assert_int_equal(s.st_mode & 07777, 0600);
}

/* Wireshark reads a capture from a pipe.  The reader finds the end of the file
 * when the capture is closed. */
static void a_pipe_of_ours_has_the_frames(void **state)
{
	static const uint8_t payload[] = "0123456";
	char pipe[sizeof(path) + 8];
	const uint8_t *frame;
	uint32_t bytes;
	size_t next;
	ssize_t n;
	int fd;

	snprintf(pipe, sizeof(pipe), "%s.pipe", path);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	capture_to(pipe);
	assert_int_equal(read(fd, seen, sizeof(seen)), PREAMBLE);
	capture_frame(&four_a, &four_b, payload, sizeof(payload), 0, 0, 64);
	n = read(fd, seen, sizeof(seen));
	assert_true(n > 0);
	seen_bytes = (size_t)n;
	frame = frame_at(0, &bytes, &next);
	assert_int_equal(next, seen_bytes);
	assert_memory_equal(frame + bytes - sizeof(payload), payload,
			    sizeof(payload));
	capture_close();
	assert_int_equal(read(fd, seen, sizeof(seen)), 0);
	close(fd);
	assert_int_equal(unlink(pipe), 0);
}

/* If not 0: each call of fstat for a pipe subtracts 1, and the call that makes
 * this 0 also replaces looked_at. */
static int looks;
static const char *looked_at; /* a pipe; a link to `stranger` replaces it */
static const char *stranger;  /* a pipe that must get no frame */

/* Replaces libc's fstat for the tested code. */
int fstat(int fd, struct stat *s)
{
	int err = (int)syscall(SYS_newfstatat, fd, "", s, AT_EMPTY_PATH);

	if (!err && S_ISFIFO(s->st_mode) && looks && !--looks) {
		assert_int_equal(unlink(looked_at), 0);
		assert_int_equal(symlink(stranger, looked_at), 0);
	}
	return err;
}

static int make_pipe(const char *name)
{
	assert_int_equal(mkfifo(name, 0600), 0);
	return open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static void a_pipe_that_becomes_a_link_has_no_frames(void **state)
{
	char one[sizeof(path) + 8], other[sizeof(path) + 8];
	int fds[2];

	snprintf(one, sizeof(one), "%s.one", path);
	snprintf(other, sizeof(other), "%s.other", path);
	setenv("ADVERB_EXPLAIN", "0", 1);
	looked_at = one;
	stranger = other;
	for (int i = 1; i < 4; i++) {
		capture_close();
		fds[0] = make_pipe(one);
		fds[1] = make_pipe(other);
		setenv("ADVERB_PCAP", one, 1);
		looks = i;
		capture_open(false);
		assert_int_equal(looks, 0);
		assert_int_equal(read(fds[1], seen, sizeof(seen)), 0);
		capture_close();
		close(fds[0]);
		close(fds[1]);
		assert_int_equal(unlink(one), 0);
		assert_int_equal(unlink(other), 0);
	}
	unsetenv("ADVERB_EXPLAIN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_file_that_cannot_be_made_blocking_is_refused),
		CASE(a_file_that_is_no_capture_of_ours_gets_no_frames),
		CASE(a_file_of_another_user_gets_no_frames),
		CASE(a_folder_that_others_write_gets_no_capture),
		CASE(a_folder_of_ones_own_group_gets_a_capture),
		CASE(another_users_folder_or_link_gets_no_capture),
		CASE(a_descriptor_gets_the_capture),
		CASE(a_capture_is_for_its_user_alone),
		CASE(a_pipe_of_ours_has_the_frames),
		CASE(a_signal_loses_no_frame_in_a_full_pipe),
		CASE(a_pipe_without_a_reader_ends_the_capture_alone),
		CASE(a_pipe_that_becomes_a_link_has_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
