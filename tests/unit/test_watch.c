/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/watch: the queue pairs that are read of one user are bounded, and those
 * of another user are read nevertheless. */
#include "test.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "tools/watch.h"

enum {
	HOSTILE = 8,	/* processes of the hostile user */
	OTHER = 1,	/* processes of the other user */
	FIRST_ID = 500, /* the hostile user's ID; the other user's is the next
			 */
	/* offsets in a forged arena */
	AT_ROOT = 4096,
	AT_COUNTERS = AT_ROOT + 4096,
	AT_ROWS = AT_COUNTERS + (1 << 20),
	AT_QPS = AT_ROWS + HCA_MAX_QP * sizeof(aoff),
	STRIDE = 8, /* between two queue pairs, which overlap */
	ARENA_BYTES = AT_QPS + HCA_MAX_QP * STRIDE + sizeof(struct qp),
};

static pid_t children[HOSTILE + OTHER];

FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);

/* Replaces fopen: gives the processes of the test their users. */
FILE *__wrap_fopen64(const char *path, const char *mode)
{
	static char text[64];
	int pid;

	if (sscanf(path, "/proc/%d/status", &pid) == 1)
		for (int i = 0; i < HOSTILE + OTHER; i++) {
			if (children[i] != pid)
				continue;
			snprintf(text, sizeof(text),
				 "Uid:\t%d\t0\nNSpid:\t%d\n",
				 FIRST_ID + (i >= HOSTILE), pid);
			return fmemopen(text, strlen(text), "r");
		}
	return __real_fopen64(path, mode);
}

static void put_bytes(int fd, const void *p, size_t bytes, off_t at)
{
	if (pwrite(fd, p, bytes, at) != (ssize_t)bytes)
		_exit(1);
}

/* Makes an arena in which as many queue pairs as possible overlap. */
static void forge_arena(void)
{
	static aoff rows[HCA_MAX_QP];
	const struct arena_hdr h = {.magic = ARENA_MAGIC,
				    .layout = ARENA_LAYOUT,
				    .root = AT_ROOT,
				    .shared = ARENA_BYTES,
				    .shared_fd = -1,
				    .process = (uint32_t)getpid()};
	const struct hca_shared s = {.shape = HCA_SHAPE,
				     .qp_top = UINT32_MAX,
				     .qps = AT_ROWS,
				     .counters = AT_COUNTERS,
				     .suspects = AT_COUNTERS};
	int fd = memfd_create("adverb-arena", MFD_ALLOW_SEALING);

	if (ftruncate(fd, ARENA_BYTES) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		_exit(1);
	put_bytes(fd, &h, sizeof(h), 0);
	put_bytes(fd, &s, sizeof(s), AT_ROOT);
	for (uint32_t i = 0; i < HCA_MAX_QP; i++) {
		rows[i] = AT_QPS + i * STRIDE;
		put_bytes(fd, &i, sizeof(i),
			  (off_t)(rows[i] + offsetof(struct qp, stats.row)));
	}
	put_bytes(fd, rows, sizeof(rows), AT_ROWS);
}

/* Starts the processes, and waits until each has its arena. */
static int start_children(void **state)
{
	char byte;

	for (int i = 0; i < HOSTILE + OTHER; i++) {
		int news[2];

		assert_int_equal(pipe(news), 0);
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (!children[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			forge_arena();
			_exit(write(news[1], "", 1) != 1 || pause());
		}
		close(news[1]); /* a child that fails ends the read */
		assert_int_equal(read(news[0], &byte, 1), 1);
		close(news[0]);
	}
	return 0;
}

static int end_children(void **state)
{
	for (int i = 0; i < HOSTILE + OTHER; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	return 0;
}

/* Returns the queue pairs of the children from `from` up to before `to`. */
static size_t count_qps(const struct watch *w, int from, int to)
{
	size_t count = 0;

	for (size_t i = 0; i < w->count; i++)
		for (int child = from; child < to; child++)
			if (w->processes[i].pid == children[child])
				count += w->processes[i].qp_count;
	return count;
}

static const struct watch_user *user_of(const struct watch *w, uid_t id)
{
	for (size_t i = 0; i < w->user_count; i++)
		if (w->users[i].id == id)
			return &w->users[i];
	fail_msg("user %u has no entry", id);
	return NULL;
}

static void a_user_hides_no_queue_pair_of_another(void **state)
{
	struct watch w;

	assert_int_equal(watch_take(&w), 0);
	assert_int_equal(count_qps(&w, 0, HOSTILE), WATCH_USER_QPS);
	assert_int_equal(count_qps(&w, HOSTILE, HOSTILE + OTHER), HCA_MAX_QP);
	assert_true(user_of(&w, FIRST_ID)->is_cut);
	assert_false(user_of(&w, FIRST_ID + 1)->is_cut);
	watch_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_user_hides_no_queue_pair_of_another, start_children,
			end_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
