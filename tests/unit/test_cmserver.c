/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection management by the broker, without a broker process: no user learns
 * of another user's connections, or changes them. */
#include "cmserver_alone.h"

#include "broker/cm_gsi.h"
#include "broker/cmserver.h"
#include "broker/gsi.h"
#include "broker/procfs.h"
#include "broker/user.h"
#include "cm/conv.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static void a_process_cannot_take_anothers_record(void **state)
{
	struct cmproto m = resume_of(77, CONV_TIMEWAIT);
	struct fd_store_ledger *l;
	struct alone a;
	pid_t other = fork();

	assert_true(other >= 0);
	if (!other) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	begin_alone(&a);
	l = a.fd_store.ledger;
	l->records = 1;
	l->record[0].owner = fd_store_owner(getuid(), other);
	memcpy(&l->record[0].note, m.note, sizeof(l->record[0].note));
	cmserver_succeed(a.s, 0);
	assert_true(cmserver_awaits(a.s, other));

	send_request(&a, m, CMPROTO_RESUME, 0);
	assert_int_equal(a.sent.err, -EPERM);
	assert_true(cmserver_awaits(a.s, other));
	send_request(&a, m, CMPROTO_RELEASE, 0);
	assert_true(cmserver_awaits(a.s, other));
	/* the index of the port's object is also the index of the record's
	 * slot; nevertheless a RELEASE of the port leaves the record */
	send_request(&a, (struct cmproto){.at.space = 0x106}, CMPROTO_BIND, 0);
	send_request(&a, m, CMPROTO_RELEASE, a.sent.new_id);
	assert_int_equal(l->record[0].owner.is_owned, 1);

	cmserver_client_free(a.s, a.c, 0);
	a.c = cmserver_client_new(a.s, a.fd[0], getuid(), other);
	send_request(&a, resume_of(77, 0), CMPROTO_RESUME, 0);
	assert_int_equal(a.sent.err, -EINVAL);
	assert_true(cmserver_awaits(a.s, other));
	send_request(&a, m, CMPROTO_RESUME, 0);
	assert_int_equal(a.sent.err, 0);
	assert_false(cmserver_awaits(a.s, other));
	end_alone(&a);
	end_child(other);
}

/* Any client may give back a note as a broker has written it; a client of the
 * broker's own user may give back any note. */
static void another_user_can_give_back_only_what_a_broker_wrote(void **state)
{
	struct cmproto written, made_up = resume_live(8), changed;
	struct alone a, own, other;

	begin_alone(&a);
	other = join_alone(&a, FIRST_USER);
	send_request(&other, resume_live(7), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, 0);
	written = other.sent;
	/* the time in which clients of an earlier broker come back is over */
	other.now_ns = CM_SEAL_LENIENT_NS;
	send_request(&other, made_up, CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	leave_alone(&other);
	cmserver_client_free(a.s, a.c, 0);
	cmserver_free(a.s);
	gsi_flush(a.gsi);
	/* the successor, which has the fd store */
	memset(a.gsi, 0, sizeof(*a.gsi));
	a.s = cm_gsi_new(a.gsi, &a.fd_store, 0);
	cmserver_succeed(a.s, 0);
	a.c = cmserver_client_new(a.s, a.fd[0], getuid(), getpid());
	own = a;
	other = join_alone(&a, FIRST_USER);
	send_request(&other, made_up, CMPROTO_RELEASE, 0);
	assert_false(cmserver_is_busy(a.s));
	send_request(&other, made_up, CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	for (size_t i = 0; i < sizeof(struct cm_note) + 8; i++) {
		changed = written;
		changed.note[i] ^= 1;
		send_request(&other, changed, CMPROTO_RESUME, 0);
		assert_int_equal(other.sent.err, -EPERM);
	}
	send_request(&other, written, CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, 0);
	assert_memory_equal(other.sent.note, written.note, CMPROTO_NOTE);
	send_request(&own, made_up, CMPROTO_RESUME, 0);
	assert_int_equal(own.sent.err, 0);
	leave_alone(&other);
	end_alone(&a);
}

/*
 * If the note claimed a queue pair, a user could claim that queue pairs of
 * another host are connected to the user's own, and the broker would refuse
 * that host's requests as stale.
 */
static void a_note_without_a_seal_claims_no_queue_pair(void **state)
{
	struct cmproto at = {.at.space = 0x106, .any_v4 = 1}, own;
	struct alone a, first, caller, again;
	struct live_peer about;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	caller = join_alone(&a, getuid());
	send_request(&a, at, CMPROTO_BIND, 0);
	at.at.local_port = a.sent.at.local_port;
	send_request(&a, (struct cmproto){.backlog = 4}, CMPROTO_LISTEN,
		     a.sent.new_id);
	connect_to_far(&first, 1000, 1, false);
	/* the answer has the note with this broker's seal; given back with the
	 * seal, the note claims no queue pair either */
	own = first.sent;
	assert_int_not_equal(own.new_id, 0);
	leave_alone(&first);
	again = join_alone(&a, FIRST_USER);
	again.now_ns = CM_SEAL_LENIENT_NS;
	send_request(&again, own, CMPROTO_RESUME, 0);
	claim_from_far(&a, at.at.local_port, 1000, 1);
	assert_int_equal(count_doubts(&a, 0, &about), 0);
	assert_true(cmserver_has_output(a.c));
	assert_true(cmserver_output(a.c));
	take_event(a.fd[1], CMPROTO_REQUEST);
	/* a note of the broker's own user needs no seal */
	connect_to_far(&caller, 3000, 1, false);
	claim_from_far(&a, at.at.local_port, 3000, 1);
	assert_int_equal(count_doubts(&a, 3000, &about), 1);
	leave_alone(&again);
	leave_alone(&caller);
	end_alone(&a);
}

/* The broker asks a doubted peer's host whether the queue pair is alive
 * (cm_doubts.h).  If the doubt lacked the interface of a link-local peer, the
 * broker could not ask, and each REQ that names the peer's queue pair would end
 * the connection. */
static void a_doubt_has_the_interface_of_a_link_local_peer(void **state)
{
	static const uint8_t peer[16] = {0xfe, 0x80, [15] = 9};
	struct cmproto at = {.at.space = 0x106, .any_v4 = 1};
	struct live_peer about;
	struct alone a;

	begin_alone(&a);
	send_request(&a, at, CMPROTO_BIND, 0);
	at.at.local_port = a.sent.at.local_port;
	send_request(&a, (struct cmproto){.backlog = 4}, CMPROTO_LISTEN,
		     a.sent.new_id);
	connect_to(&a, peer, 3, 1000, 1, false);
	claim_from(&a, peer, 3, at.at.local_port, 1000, 1);
	assert_int_equal(count_doubts(&a, 1000, &about), 1);
	assert_memory_equal(about.peer, peer, 16);
	assert_int_equal(about.scope, 3);
	end_alone(&a);
}

/* If other users learned of the end, they could find out which processes are
 * connected. */
static void only_its_user_learns_of_the_end_of_a_connection(void **state)
{
	static const uint8_t peer[16];
	struct alone a, first, second, none;

	begin_alone(&a);
	first = join_alone(&a, FIRST_USER);
	second = join_alone(&a, SECOND_USER);
	none = join_alone(&a, USER_NONE);
	send_request(&first, seal_note(&a, resume_of(7, CONV_TIMEWAIT)),
		     CMPROTO_RESUME, 0);
	assert_int_equal(first.sent.err, 0);
	assert_true(cmserver_has_ended(a.s, FIRST_USER, peer, 7));
	assert_false(cmserver_has_ended(a.s, FIRST_USER, peer, 8));
	assert_false(cmserver_has_ended(a.s, SECOND_USER, peer, 7));
	assert_false(cmserver_has_ended(a.s, getuid(), peer, 7));
	/* a user that has no connection here */
	assert_false(cmserver_has_ended(a.s, SECOND_USER + 1, peer, 7));
	/* a live connection of another user with the same queue pair of the
	 * peer changes no answer */
	send_request(&second, seal_note(&a, resume_live(8)), CMPROTO_RESUME, 0);
	assert_int_equal(second.sent.err, 0);
	assert_true(cmserver_has_ended(a.s, FIRST_USER, peer, 7));
	assert_false(cmserver_has_ended(a.s, SECOND_USER, peer, 7));
	/* two clients of USER_NONE may be of two users */
	leave_alone(&first);
	send_request(&none, seal_note(&a, resume_of(10, CONV_TIMEWAIT)),
		     CMPROTO_RESUME, 0);
	assert_int_equal(none.sent.err, 0);
	assert_false(cmserver_has_ended(a.s, USER_NONE, peer, 7));
	leave_alone(&second);
	leave_alone(&none);
	end_alone(&a);
}

/* A successor accepts notes without a seal until it gets the fd store, or for
 * CM_SEAL_LENIENT_NS if the fd store is lost. */
static void without_a_store_a_successor_accepts_notes_at_first(void **state)
{
	struct fd_store_ledger *ledger;
	struct alone a, other;

	begin_alone(&a);
	ledger = a.fd_store.ledger;
	a.fd_store.ledger = NULL;
	other = join_alone(&a, FIRST_USER);
	other.now_ns = CM_SEAL_LENIENT_NS - 1;
	send_request(&other, resume_live(7), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, 0);
	other.now_ns++;
	send_request(&other, resume_live(8), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	a.fd_store.ledger = ledger;
	ledger->note_key.word[0] = 1;
	other.now_ns = 0;
	send_request(&other, resume_live(8), CMPROTO_RESUME, 0);
	assert_int_equal(other.sent.err, -EPERM);
	leave_alone(&other);
	end_alone(&a);
}

/* Starts a process that calls `first`, and then waits until a signal kills it.
 * Fails the test unless `first` returns true. */
static pid_t begin_child(bool (*first)(void))
{
	int ready[2];
	char done = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		done = first();
		if (write(ready[1], &done, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &done, 1), 1);
	assert_true(done);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static bool has_all(void)
{
	return true;
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {0};

	return !syscall(SYS_capset, &head, none);
}

/* Gets all capabilities, but in a user namespace of its own. */
static bool enter_users(void)
{
	return !unshare(CLONE_NEWUSER);
}

/* Makes the process undumpable, as after exec of a file with capabilities. */
static bool hide_memory(void)
{
	return !prctl(PR_SET_DUMPABLE, 0);
}

/* Binds port 500 for a client of user `uid` in a process that has called
 * `first`; returns the error. */
static int bind_500(struct alone *a, bool (*first)(void), uid_t uid)
{
	struct cmproto m = {
		.at.space = 0x106, .any_v4 = 1, .at.local_port = 500};
	struct alone b = *a;
	pid_t pid = begin_child(first);
	int err;

	b.c = cmserver_client_new(a->s, a->fd[0], uid, pid);
	assert_non_null(b.c);
	send_request(&b, m, CMPROTO_BIND, 0);
	err = b.sent.err;
	/* a port from 1024 on needs no capability */
	m.at.local_port = 1024;
	send_request(&b, m, CMPROTO_BIND, 0);
	assert_int_equal(b.sent.err, 0);
	/* a conversation is resumed even if its port may not be bound */
	m = resume_of(pid, CONV_TIMEWAIT);
	m.at.local_port = 500;
	m.any_v4 = 1;
	send_request(&b, m, CMPROTO_RESUME, 0);
	assert_int_equal(b.sent.err, 0);
	if (err) {
		send_request(a,
			     (struct cmproto){.at.space = 0x106,
					      .any_v4 = 1,
					      .at.local_port = 500},
			     CMPROTO_BIND, 0);
		assert_int_equal(a->sent.err, 0);
		send_request(a, (struct cmproto){0}, CMPROTO_RELEASE,
			     a->sent.new_id);
	}
	cmserver_client_free(a->s, b.c, 0);
	end_child(pid);
	return err;
}

/* For a low port, rdma_cm requires the capability that the kernel requires for
 * UDP. */
static void a_low_port_needs_the_capability(void **state)
{
	char map[2];
	FILE *f = fopen("/proc/self/uid_map", "re");
	bool has_map = f && fgets(map, sizeof(map), f);
	struct alone a;

	if (f)
		fclose(f);
	begin_alone(&a);
	assert_int_equal(bind_500(&a, has_all, getuid()), 0);
	assert_int_equal(bind_500(&a, drop_capabilities, getuid()), -EACCES);
	/* the process connected as another user */
	assert_int_equal(bind_500(&a, has_all, FIRST_USER), -EACCES);
	if (has_map)
		assert_int_equal(bind_500(&a, enter_users, getuid()), -EACCES);
	if (getuid() && has_map)
		assert_int_equal(bind_500(&a, hide_memory, getuid()), -EACCES);
	end_alone(&a);
}

/* The broker has no descriptor left, so it cannot look into /proc. */
static void an_ordinary_port_needs_no_look_at_the_process(void **state)
{
	struct rlimit files, none;
	struct alone a;

	begin_alone(&a);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){0, files.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	send_request(&a,
		     (struct cmproto){.at.space = 0x106,
				      .any_v4 = 1,
				      .at.local_port = 5000},
		     CMPROTO_BIND, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(a.sent.err, 0);
	end_alone(&a);
}

static void set_first_port(const char *text)
{
	int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start",
		      O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		SKIP_FOR("the sysctl cannot be changed here");
	close(fd);
}

/* A broker without a descriptor judges by the sysctl that it has read before.
 */
static void the_sysctl_of_ports_is_kept(void **state)
{
	static const struct {
		const char *first;
		uint16_t port;
		bool is_low;
	} rows[] = {{"5000", 2000, true}, {"0", 80, false}};
	struct rlimit files, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = (struct rlimit){0, files.rlim_max};
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		bool before, without;

		set_first_port(rows[i].first);
		before = procfs_is_low_port(rows[i].port);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		without = procfs_is_low_port(rows[i].port);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
		assert_int_equal(before, rows[i].is_low);
		assert_int_equal(without, rows[i].is_low);
	}
	set_first_port("1024");
}

static int refusal_of(struct alone *a, enum cmproto_kind kind, bool is_ib)
{
	struct cmproto m = {.is_ib = is_ib, .at.space = 0x106};

	send_request(a, m, kind, 0);
	return a->sent.err;
}

/* Only the process of a fabric accepts GIDs of InfiniBand as addresses, and
 * finds paths. */
static void a_broker_refuses_gids_and_paths(void **state)
{
	struct alone a;

	begin_alone(&a);
	assert_int_equal(refusal_of(&a, CMPROTO_BIND, true), -EINVAL);
	assert_int_equal(refusal_of(&a, CMPROTO_CONNECT, true), -EINVAL);
	assert_int_equal(refusal_of(&a, CMPROTO_RESUME, true), -EINVAL);
	assert_int_equal(refusal_of(&a, CMPROTO_ROUTE, true), -EOPNOTSUPP);
	assert_int_equal(refusal_of(&a, CMPROTO_ROUTE, false), -EOPNOTSUPP);
	assert_int_equal(refusal_of(&a, CMPROTO_BIND, false), 0);
	end_alone(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broker_refuses_gids_and_paths),
		cmocka_unit_test(a_process_cannot_take_anothers_record),
		cmocka_unit_test(a_low_port_needs_the_capability),
		cmocka_unit_test(an_ordinary_port_needs_no_look_at_the_process),
		cmocka_unit_test(the_sysctl_of_ports_is_kept),
		cmocka_unit_test(
			another_user_can_give_back_only_what_a_broker_wrote),
		cmocka_unit_test(
			only_its_user_learns_of_the_end_of_a_connection),
		cmocka_unit_test(a_note_without_a_seal_claims_no_queue_pair),
		cmocka_unit_test(
			a_doubt_has_the_interface_of_a_link_local_peer),
		cmocka_unit_test(
			without_a_store_a_successor_accepts_notes_at_first),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
