/* SPDX-License-Identifier: BSD-2-Clause */
/* broker/fd_store: member i is found whole and as member i, or not at all; a
 * socket that is no fd store is refused, and its descriptors are closed; a
 * process counts as ended only if it has ended. */
#include "brought.h"
#include "refused_syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/cm_journal.h"
#include "broker/fd_store.h"

#define MIXED	  8 /* records of each process in a journal */
#define FREE_MOST 3 /* more than fd_store_process has open at a time */

static int refusal; /* the errno of pidfd_open; 0: the kernel's result */

static uint32_t looks; /* calls of pidfd_open */

static int refused_syscall(long number, long first)
{
	looks += number == SYS_pidfd_open;
	return number == SYS_pidfd_open ? refusal : 0;
}

static ino_t number_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void assert_member(struct fd_store *s, uint32_t i, int fd)
{
	int found[FD_STORE_MEMBER_FDS];

	assert_int_equal(fd_store_get(s, i, found), 0);
	assert_int_equal(number_of(found[0]), number_of(fd));
	assert_int_equal(found[1], -1);
	close(found[0]);
}

/* A put fails, for example, when the user has too many descriptors in flight.
 * The member can be put later. */
static void a_descriptor_that_cannot_be_stored_moves_no_other(void **state)
{
	int first = memfd_create("first", 0), third = memfd_create("third", 0);
	int second = memfd_create("second", 0), closed,
	    found[FD_STORE_MEMBER_FDS];
	struct fd_store s;

	assert_int_equal(fd_store_new(&s), 0);
	closed = dup(first);
	close(closed);
	assert_int_equal(fd_store_put(&s, 0, (int[]){first, -1, -1}), 0);
	assert_int_equal(fd_store_put(&s, 1, (int[]){closed, -1, -1}), -EBADF);
	assert_int_not_equal(fd_store_put(&s, 2, (int[]){third, -1, -1}), 0);
	assert_member(&s, 0, first);
	assert_int_equal(fd_store_get(&s, 1, found), -ENOENT);
	assert_int_equal(fd_store_put(&s, 1, (int[]){second, -1, -1}), 0);
	assert_int_equal(fd_store_put(&s, 2, (int[]){third, -1, -1}), 0);
	assert_member(&s, 1, second);
	assert_member(&s, 2, third);
	fd_store_close(&s);
	close(first);
	close(second);
	close(third);
}

/* Calls fd_store_open, which must fail, for a socket whose first message has
 * `size` bytes and n descriptors. */
static void open_forged(struct brought *b, size_t size, size_t n)
{
	struct fd_store s;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	brought_send(b, pair[1], "x", size, n);
	assert_int_equal(fd_store_open(&s, pair[0]), -EPROTO);
	close(pair[1]);
}

/* The store comes from a client, which may be any process of the broker's user.
 */
static void a_message_that_is_no_store_leaves_no_descriptor(void **state)
{
	for (size_t size = 0; size < 2; size++) {
		struct brought b = brought_new();

		open_forged(&b, size, 3);
		assert_true(brought_are_closed(&b));
		brought_free(&b);
	}
}

/* The limit on open files leaves room only for the first descriptor of the
 * member. */
static void a_member_is_found_whole_or_not_at_all(void **state)
{
	int found[FD_STORE_MEMBER_FDS], one = memfd_create("one", 0), top;
	struct rlimit was, few;
	struct brought b = brought_new();
	struct fd_store s;

	assert_int_equal(fd_store_new(&s), 0);
	assert_int_equal(fd_store_put(&s, 0, (int[]){b.lent, b.lent, one}), 0);
	close(b.lent);
	b.lent = -1;
	top = dup(0);
	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){(rlim_t)top + 1, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(fd_store_get(&s, 0, found), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(fd_store_get(&s, 0, found), 0);
	for (int i = 0; i < FD_STORE_MEMBER_FDS; i++)
		close(found[i]);
	fd_store_close(&s);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
	close(one);
}

#define ALL_FDS (1 + 2 * FD_STORE_BUNDLES)

/* The message brings more descriptors than peek_fds has room for, and the limit
 * on open files is not reached. */
static void a_member_with_too_many_descriptors_is_malformed(void **state)
{
	int found[FD_STORE_MEMBER_FDS];
	struct brought b = brought_new();
	struct fd_store s;

	assert_int_equal(fd_store_new(&s), 0);
	brought_send(&b, s.bundle[0][1], "x", 1, ALL_FDS + 4);
	assert_int_equal(fd_store_get(&s, 0, found), -EPROTO);
	fd_store_close(&s);
	assert_true(brought_are_closed(&b));
	brought_free(&b);
}

/* Returns an fd store as another process could make it, with this ledger. */
static int make_foreign(int ledger)
{
	int store[2], all[ALL_FDS];

	all[0] = ledger;
	for (int i = 1; i < ALL_FDS; i += 2)
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_SEQPACKET, 0, &all[i]), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, store), 0);
	assert_int_equal(scm_rights_send(store[1], "", 1, all, ALL_FDS, 0), 1);
	for (int i = 1; i < ALL_FDS; i++)
		close(all[i]);
	close(store[1]);
	return store[0];
}

static int open_with_seals(int seals)
{
	int err, ledger = memfd_create("ledger", MFD_ALLOW_SEALING);
	struct fd_store s;

	assert_int_equal(
		ftruncate(ledger, (off_t)sizeof(struct fd_store_ledger)), 0);
	assert_int_equal(fcntl(ledger, F_ADD_SEALS, seals), 0);
	err = fd_store_open(&s, make_foreign(ledger));
	if (err)
		assert_null(s.ledger);
	fd_store_close(&s);
	close(ledger);
	return err;
}

/* If another process could shorten the ledger, the next access to the ledger
 * would end the broker by SIGBUS. */
static void a_ledger_that_can_be_shortened_is_refused(void **state)
{
	assert_int_equal(open_with_seals(F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_equal(open_with_seals(0), -EPROTO);
	assert_int_equal(open_with_seals(F_SEAL_GROW), -EPROTO);
	assert_int_equal(open_with_seals(F_SEAL_SHRINK), -EPROTO);
}

static void a_ledger_that_is_no_memfd_is_refused(void **state)
{
	FILE *f = tmpfile();
	struct fd_store s;

	assert_non_null(f);
	assert_int_equal(
		ftruncate(fileno(f), (off_t)sizeof(struct fd_store_ledger)), 0);
	assert_int_equal(fd_store_open(&s, make_foreign(fileno(f))), -EPROTO);
	fclose(f);
}

/* Leaves room for `count` more descriptors.  Returns the limit as it was. */
static struct rlimit leave_free(rlim_t count)
{
	int top = dup(0);
	struct rlimit was, few;

	close(top);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = (struct rlimit){(rlim_t)top + count, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return was;
}

/* Returns the result of fd_store_process while `count` descriptors are free,
 * and closes the pidfd, if there is one. */
static int process_with(const struct fd_store_entry *e, rlim_t count)
{
	struct rlimit was = leave_free(count);
	int fd = fd_store_process(e);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	if (fd >= 0)
		close(fd);
	return fd;
}

/* Returns the entry of a process that has ended. */
static struct fd_store_entry ended_process(void)
{
	int hold[2];
	struct fd_store_entry e;
	pid_t pid;
	char byte;

	assert_int_equal(pipe(hold), 0);
	pid = fork();
	if (!pid) {
		close(hold[1]);
		_exit(read(hold[0], &byte, 1) != 0);
	}
	e = fd_store_owner(geteuid(), pid);
	assert_int_equal(e.pid, pid);
	close(hold[0]);
	close(hold[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return e;
}

/* fd_store_process opens a pidfd and then, while the pidfd is open, a file of
 * /proc. */
static void a_lack_of_descriptors_is_no_end_of_a_process(void **state)
{
	struct fd_store_entry own = fd_store_owner(geteuid(), getpid());
	struct fd_store_entry ended = ended_process();

	assert_int_equal(own.pid, getpid());
	for (rlim_t n = 0; n <= FREE_MOST; n++) {
		int err = process_with(&own, n);

		assert_int_equal(process_with(&ended, n), -ESRCH);
		assert_int_equal(fd_store_is_short(err), n < 2);
		assert_int_equal(err >= 0, n >= 2);
	}
	own.start++; /* another process has got the pid */
	assert_int_equal(process_with(&own, FREE_MOST), -ESRCH);
	own.pid = 0;
	assert_int_equal(process_with(&own, FREE_MOST), -EINVAL);
}

/* Linux before 5.3 has no pidfd_open, and a seccomp filter may refuse it. */
static void an_end_is_seen_without_pidfds(void **state)
{
	static const int refusals[] = {ENOSYS, EPERM};
	struct fd_store_entry own = fd_store_owner(geteuid(), getpid());
	struct fd_store_entry ended = ended_process(), other = own;

	other.start++; /* another process has got the pid */
	for (size_t i = 0; i < TEST_COUNT(refusals); i++) {
		refusal = refusals[i];
		assert_int_equal(fd_store_process(&own), -refusal);
		assert_int_equal(fd_store_process(&ended), -ESRCH);
		assert_int_equal(fd_store_process(&other), -ESRCH);
	}
	refusal = EMFILE;
	assert_int_equal(fd_store_process(&own), -EMFILE);
	refusal = 0;
}

/* The earlier broker was in another PID namespace, as in a container that
 * shares the network of its host.  In this namespace the pids that the earlier
 * broker has noted belong to other processes. */
static void a_pid_of_another_namespace_says_nothing(void **state)
{
	struct fd_store_entry own = fd_store_owner(geteuid(), getpid());
	struct fd_store_entry ended = ended_process();
	const struct cm_note note = {.local_id = 1, .state = 1};
	struct cm_journal_search search = {0};
	struct fd_store_record got;
	struct cm_journal j;
	struct fd_store s;

	own.pid_space++;
	ended.pid_space++;
	assert_int_equal(fd_store_process(&own), -EINVAL);
	assert_int_equal(fd_store_process(&ended), -EINVAL);
	assert_int_equal(fd_store_new(&s), 0);
	cm_journal_init(&j, &s);
	cm_journal_write(&j, 0, &ended, &note);
	cm_journal_inherit(&j);
	assert_false(cm_journal_next(&j, &search, 0, &got));
	assert_false(cm_journal_next(&j, &search, ended.pid, &got));
	cm_journal_fini(&j);
	fd_store_close(&s);
}

/* The conversation of a process that lives is not released. */
static void a_lack_of_descriptors_releases_no_conversation(void **state)
{
	const struct fd_store_entry own = fd_store_owner(geteuid(), getpid());
	const struct fd_store_entry ended = ended_process();
	struct cm_note note = {.local_id = 1, .state = 1};
	struct cm_journal_search search = {0};
	struct fd_store_record got;
	struct cm_journal j;
	struct fd_store s;
	struct rlimit was;

	assert_int_equal(fd_store_new(&s), 0);
	cm_journal_init(&j, &s);
	cm_journal_write(&j, 0, &own, &note);
	note.local_id = 2;
	cm_journal_write(&j, 1, &ended, &note);
	cm_journal_inherit(&j);
	was = leave_free(0);
	assert_true(cm_journal_next(&j, &search, 0, &got));
	assert_int_equal(got.note.local_id, 2);
	assert_false(cm_journal_next(&j, &search, 0, &got));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(cm_journal_has(&j, getpid()));
	cm_journal_fini(&j);
	fd_store_close(&s);
}

/* Starts a process that runs until it is killed, and whose pid has another
 * place in a search than this process's. */
static pid_t start_process(void)
{
	pid_t parent = getpid(), pid = fork();

	while (pid > 0 && (pid - parent) % CM_JOURNAL_LIVES == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = fork();
	}
	assert_true(pid >= 0);
	if (!pid) {
		test_begin_child(parent);
		for (;;)
			pause();
	}
	return pid;
}

/* The records of two processes that run lie between those of a process that has
 * ended. */
static void a_search_looks_once_at_a_process_that_runs(void **state)
{
	struct fd_store_entry run[2], ended = ended_process();
	struct cm_note note = {.state = 1};
	struct cm_journal_search search = {0};
	struct fd_store_record got;
	struct cm_journal j;
	struct fd_store s;
	uint32_t n = 0;

	run[0] = fd_store_owner(geteuid(), getpid());
	run[1] = fd_store_owner(geteuid(), start_process());
	assert_int_equal(fd_store_new(&s), 0);
	cm_journal_init(&j, &s);
	for (uint32_t i = 0; i < 3 * MIXED; i++) {
		note.local_id = i + 1;
		cm_journal_write(&j, i, i % 3 ? &run[i % 3 - 1] : &ended,
				 &note);
	}
	cm_journal_inherit(&j);
	looks = 0;
	while (cm_journal_next(&j, &search, 0, &got)) {
		assert_int_equal(got.owner.pid, ended.pid);
		n++;
	}
	assert_int_equal(n, MIXED);
	assert_int_equal(looks, MIXED + 2);
	assert_int_equal(j.open, 2 * MIXED);
	kill(run[1].pid, SIGKILL);
	waitpid(run[1].pid, NULL, 0);
	cm_journal_fini(&j);
	fd_store_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ledger_that_can_be_shortened_is_refused),
		cmocka_unit_test(a_ledger_that_is_no_memfd_is_refused),
		cmocka_unit_test(
			a_descriptor_that_cannot_be_stored_moves_no_other),
		cmocka_unit_test(
			a_message_that_is_no_store_leaves_no_descriptor),
		cmocka_unit_test(a_member_is_found_whole_or_not_at_all),
		cmocka_unit_test(
			a_member_with_too_many_descriptors_is_malformed),
		cmocka_unit_test(a_lack_of_descriptors_is_no_end_of_a_process),
		cmocka_unit_test(an_end_is_seen_without_pidfds),
		cmocka_unit_test(
			a_lack_of_descriptors_releases_no_conversation),
		cmocka_unit_test(a_search_looks_once_at_a_process_that_runs),
		cmocka_unit_test(a_pid_of_another_namespace_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
