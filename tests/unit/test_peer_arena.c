/* SPDX-License-Identifier: BSD-2-Clause */
/* host/peer_arena: arenas that a process does not map, and why. */
#include "local_peers.h"

#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "util/memfile.h"

static int open_error;	  /* errno value; 0: open succeeds */
static bool has_no_seals; /* F_GET_SEALS fails */

/* Replaces libc's open: unless open_error is 0, each open of /proc/PID/fd/FD
 * fails with open_error. */
int open(const char *path, int flags, ...)
{
	int at, pid;
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (!open_error || sscanf(path, "/proc/%d/fd/%d", &pid, &at) != 2)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	errno = open_error;
	return -1;
}

int fcntl(int fd, int command, ...)
{
	va_list args;
	long arg;

	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	if (command != F_GET_SEALS || !has_no_seals)
		return (int)syscall(SYS_fcntl, fd, command, arg);
	errno = EINVAL;
	return -1;
}

static void close_share(struct card *c)
{
	/* the process opens again, and shares no arena (ADVERB_DIRECT=0) */
	close_me();
	setenv("ADVERB_DIRECT", "0", 1);
	open_me();
}

static void another_build(struct card *c)
{
	me.hca.shared->shape++;
}

static void another_layout(struct card *c)
{
	((struct arena_hdr *)(void *)me.map.arena.base)->layout++;
}

static void another_magic(struct card *c)
{
	((struct arena_hdr *)(void *)me.map.arena.base)->magic++;
}

static void a_page_outside(struct card *c)
{
	me.hca.shared->peer_area = 64;
}

static void a_second_part_nowhere(struct card *c)
{
	((struct arena_hdr *)(void *)me.map.arena.base)->shared_fd = -1;
}

static void an_empty_arena(struct card *c)
{
	dup2(memfd_create("adverb-test", MFD_CLOEXEC), me.map.fd);
}

static void a_root_outside(struct card *c)
{
	((struct arena_hdr *)(void *)me.map.arena.base)->root =
		me.map.arena.size - 8;
}

static void keys_outside(struct card *c)
{
	me.hca.shared->mrs = me.map.arena.size - 4096;
}

static void another_nonce(struct card *c)
{
	me.hca.shared->nonce.va = (uintptr_t)memory;
}

static void a_nonce_nowhere(struct card *c)
{
	me.hca.shared->nonce.va = 8;
}

static void no_such_process(struct card *c)
{
	me.hca.shared->pid = 0;
}

/* Peers have been told of the arena when the process finds that it may not
 * share the arena. */
static void withdraw_arena(struct card *c)
{
	me.is_ending = 1;
	pthread_join(me.thread, NULL);
	local_peer_withdraw();
}

static void a_peer_without_a_usable_arena_is_reached_by_packets(void **state)
{
	static const struct {
		void (*what)(struct card *);
		const char *words; /* in the message to the user */
	} rows[] = {
		{close_share, "does not share its memory"},
		{another_build, "another build"},
		{another_layout, "another build"},
		{another_magic, "does not begin as an arena"},
		{an_empty_arena, "too short"},
		{a_second_part_nowhere, "no descriptor"},
		{a_root_outside, "another build"},
		{keys_outside, "table of memory regions"},
		{a_page_outside, "part that peers write"},
		{another_nonce, "does not hold what its arena says"},
		{a_nonce_nowhere, "cannot be reached"},
		{no_such_process, "does not share its memory"},
		{withdraw_arena, "does not share its memory"},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		pid_t pid = begin_process(&cards[i], rows[i].what);
		struct local_peer *n = NULL;

		*said = 0;
		assert_int_equal(get_peer(cards[i].qpn, &n), LOCAL_PEER_NEVER);
		assert_non_null(strstr(said, rows[i].words));
		assert_int_equal(count_mapped(), 1);
		end_process(pid, SIGKILL);
	}
}

/* The message names the reason, which need not be a refusal of the kernel. */
static void a_peer_whose_arena_cannot_be_opened_is_named_with_why(void **state)
{
	static const struct {
		int err;
		const char *words;
	} rows[] = {
		{EACCES, "Yama"},	   {EMFILE, "ulimit -n"},
		{ENFILE, "fs.file-max"},   {ENOMEM, "no memory"},
		{EIO, "cannot be opened"},
	};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		pid_t pid = begin_process(&cards[i], NULL);
		struct local_peer *n = NULL;

		*said = 0;
		open_error = rows[i].err;
		assert_int_equal(get_peer(cards[i].qpn, &n), LOCAL_PEER_NEVER);
		open_error = 0;
		assert_non_null(strstr(said, rows[i].words));
		end_process(pid, SIGKILL);
	}
}

/* A peer could shrink unsealed memory while this process has it mapped. */
static void an_arena_whose_seals_are_not_known_is_not_mapped(void **state)
{
	pid_t pid = begin_process(&cards[0], NULL);
	struct local_peer *n = NULL;

	has_no_seals = true;
	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_NEVER);
	has_no_seals = false;
	assert_non_null(strstr(said, "not sealed"));
	assert_int_equal(count_mapped(), 1);
	end_process(pid, SIGKILL);
}

/* Locking the mapping would allocate the pages of the files: an arena has 16
 * GiB, and an arena of a peer as many. */
static void a_program_that_locks_its_memory_fills_no_arena(void **state)
{
	enum { BYTES = 16384 }; /* less than a small limit of locked memory */
	struct arena_parts p = {.bytes = BYTES,
				.shared_bytes = BYTES,
				.prot = PROT_READ,
				.fd = memfile_new("first", BYTES),
				.shared_fd = memfile_new("shared", BYTES)};
	struct stat st;
	void *base;

	if (mlockall(MCL_FUTURE))
		SKIP_FOR("this user may not lock memory");
	base = arena_map_parts(&p);
	munlockall();
	assert_non_null(base);
	assert_int_equal(fstat(p.fd, &st), 0);
	assert_int_equal(st.st_blocks, 0);
	assert_int_equal(fstat(p.shared_fd, &st), 0);
	assert_int_equal(st.st_blocks, 0);
	munmap(base, (size_t)2 * BYTES);
	close(p.shared_fd);
	close(p.fd);
}

static void become_undumpable(struct card *c)
{
	prctl(PR_SET_DUMPABLE, 0);
}

/* The terminal that show_a_terminal puts in the place of its arena; -1: none.
 */
static int terminal = -1;

static void show_a_terminal(struct card *c)
{
	dup2(terminal, me.map.fd);
}

/* A terminal that the leader of a session opens becomes the leader's
 * controlling terminal.  This process checks that it has no controlling
 * terminal after it has looked at the arena. */
static void look_at_a_terminal(struct card *c)
{
	struct local_peer *n;

	if (setsid() > 0 && get_peer(cards[0].qpn, &n) == LOCAL_PEER_NEVER &&
	    open("/dev/tty", O_RDWR | O_CLOEXEC) < 0)
		cards[2].stage = 1;
}

static void a_file_that_is_no_memory_is_not_opened(void **state)
{
	int other = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	pid_t shows, looks;

	if (other < 0 || grantpt(other) || unlockpt(other))
		SKIP_FOR("this user gets no pseudoterminal");
	terminal = open(ptsname(other), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(terminal >= 0);
	shows = begin_process(&cards[0], show_a_terminal);
	looks = begin_process(&cards[1], look_at_a_terminal);
	assert_int_equal(cards[2].stage, 1);
	end_process(looks, SIGKILL);
	end_process(shows, SIGKILL);
	close(terminal);
	close(other);
}

static char fifo[] = "/tmp/adverb-fifo-XXXXXX";

static void show_a_fifo(struct card *c)
{
	dup2(open(fifo, O_PATH), me.map.fd);
}

static void look_at_a_fifo(struct card *c)
{
	struct local_peer *n;

	if (get_peer(cards[0].qpn, &n) == LOCAL_PEER_NEVER)
		cards[2].stage = 1;
}

/* Opening a FIFO would wake processes that wait for a reader. */
static void a_fifo_is_not_opened(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct inotify_event event;
	pid_t shows, looks;

	close(mkstemp(fifo));
	unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_true(inotify_add_watch(watch, fifo, IN_OPEN) >= 0);
	cards[2].stage = 0;
	shows = begin_process(&cards[0], show_a_fifo);
	looks = begin_process(&cards[1], look_at_a_fifo);
	assert_int_equal(cards[2].stage, 1);
	assert_true(read(watch, &event, sizeof(event)) < 0);
	end_process(looks, SIGKILL);
	end_process(shows, SIGKILL);
	unlink(fifo);
	close(watch);
}

/* The attacker knows one word of the memory of the process that the attacker's
 * arena names. */
static void point_at_another(struct card *c)
{
	me.hca.shared->nonce.value = 0;
	me.hca.shared->nonce.va = (uintptr_t)memory;
	me.hca.shared->pid = (uint32_t)c->va;
}

static void an_arena_that_names_another_process_is_refused(void **state)
{
	struct local_peer *n;
	pid_t victim, pid;

	memset(memory, 0, sizeof(memory));
	victim = begin_process(&cards[0], NULL);
	cards[1].va = (uint64_t)victim;
	pid = begin_process(&cards[1], point_at_another);
	assert_int_equal(get_peer(cards[1].qpn, &n), LOCAL_PEER_NEVER);
	assert_non_null(strstr(said, "its arena says that it is another "
				     "process's"));
	end_process(pid, SIGKILL);
	end_process(victim, SIGKILL);
}

/* A process with privileges could read the memory all the same. */
static void
a_peer_whose_memory_the_kernel_refuses_is_reached_by_packets(void **state)
{
	struct local_peer *n = NULL;
	pid_t pid;

	if (!geteuid())
		SKIP_FOR("root may read the memory of any process");
	pid = begin_process(&cards[0], become_undumpable);
	assert_int_equal(get_peer(cards[0].qpn, &n), LOCAL_PEER_NEVER);
	assert_non_null(strstr(said, "kernel"));
	end_process(pid, SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(a_peer_without_a_usable_arena_is_reached_by_packets),
		EACH(a_peer_whose_arena_cannot_be_opened_is_named_with_why),
		EACH(an_arena_whose_seals_are_not_known_is_not_mapped),
		EACH(a_program_that_locks_its_memory_fills_no_arena),
		EACH(a_file_that_is_no_memory_is_not_opened),
		EACH(a_fifo_is_not_opened),
		EACH(an_arena_that_names_another_process_is_refused),
		EACH(a_peer_whose_memory_the_kernel_refuses_is_reached_by_packets),
	};

	return cmocka_run_group_tests(tests, setup_cards, NULL);
}
