/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_direct: a program of a fabric that shares its arena finds the
 * arenas of other such programs, and learns when one of them has ended. */
#include "fabric_programs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broker/proto.h"
#include "tools/fabric_watch.h"

#define ARENA_FD 4321 /* the fabric does not open it */

/* n: the n-th watch of a program's process from now on fails; 0: none fails. */
static int refused_watch;

/* Replaces libc's epoll_ctl in the fabric's process: one watch of a program's
 * process fails. */
int epoll_ctl(int epoll, int op, int fd, struct epoll_event *e)
{
	const struct fabric_watch *w = e ? e->data.ptr : NULL;

	if (op == EPOLL_CTL_ADD && w && w->kind == FABRIC_WATCH_PROCESS &&
	    refused_watch && !--refused_watch) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epoll, op, fd, e);
}

/* A program on a host of the fabric.  This process plays the program. */
struct sharer {
	/* connections to the fabric and of the data end; the page of changes */
	int fabric, data, page;
	/* data_number: of the data end; number: of the program, 0 if the
	 * program shares nothing */
	uint32_t data_number, number;
};

static int set_up(void **state)
{
	is_direct = true;
	return start_server(state);
}

static int set_up_refusal(void **state)
{
	refused_watch = 2;
	return set_up(state);
}

static int stop_refusal(void **state)
{
	refused_watch = 0;
	return stop_server(state);
}

static int set_up_without(void **state)
{
	is_direct = false;
	return start_server(state);
}

static struct sharer join_at(const char *host)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_DATA, .number = 1};
	struct sharer s = {.fabric = join_fabric(), .page = -1};

	strcpy(m.host, host);
	assert_int_equal(ask_fabric(s.fabric, &m, &s.data), 0);
	s.data_number = m.number;
	return s;
}

/* Asks to share an arena as the process `pid`, and brings descriptor fd to wake
 * that process; -1: none.  Returns 0 or a negative errno. */
static int share_as(struct sharer *s, int fd, uint32_t pid)
{
	struct fabric_proto m = {.kind = FABRIC_PROTO_SHARE,
				 .arena = {proto_pid_space(), pid, ARENA_FD}};
	int err = fabric_client_bring(s->fabric, &m, fd, &s->page);

	s->number = err ? 0 : m.number;
	return err;
}

static int share_own(struct sharer *s)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int err = share_as(s, fd, (uint32_t)getpid());

	close(fd);
	return err;
}

static struct sharer share_at(const char *host)
{
	struct sharer s = join_at(host);

	assert_int_equal(share_own(&s), 0);
	assert_true(s.page >= 0 && s.number);
	return s;
}

static void end_sharer(struct sharer *s)
{
	close(s->data);
	close(s->fabric);
	if (s->page >= 0)
		close(s->page);
}

/* Asks about packets from port 1 of a host to a data end at a LID. */
static int ask_reach(const struct sharer *from, uint16_t lid, uint32_t number,
		     struct fabric_proto *m)
{
	*m = (struct fabric_proto){
		.kind = FABRIC_PROTO_REACH,
		.number = 1,
		.reach = {.dest_qpn = number << DATA_REST_BITS | 5,
			  .dlid = lid,
			  .mtu = 4}};
	return ask_fabric(from->fabric, m, NULL);
}

static int ask_arena(const struct sharer *from, uint32_t number,
		     struct fabric_proto *m, int *fd)
{
	*m = (struct fabric_proto){.kind = FABRIC_PROTO_ARENA,
				   .number = number};
	return ask_fabric(from->fabric, m, fd);
}

static void a_program_finds_the_arena_of_its_peer(void **state)
{
	struct sharer a = share_at("A"), b = share_at("B");
	uint64_t one = 1, read_back = 0;
	uint32_t changes;
	struct fabric_proto m;
	int fd;

	assert_int_not_equal(a.number, b.number);
	assert_int_equal(ask_reach(&a, LID_B, b.data_number, &m), 0);
	assert_int_equal(m.reached.program, b.number);
	assert_int_equal(m.reached.peer.slid, LID_A1);
	assert_int_equal(m.reached.peer.port, 1);
	assert_int_equal(m.reached.peer.pkeys, 1);
	assert_int_equal(pread(a.page, &changes, 4, 0), 4);
	assert_int_equal(changes, m.reached.changes);
	assert_int_equal(ask_arena(&a, b.number, &m, &fd), 0);
	assert_int_equal(m.arena.pid, getpid());
	assert_int_equal(m.arena.fd, ARENA_FD);
	assert_int_equal(write(fd, &one, 8), 8);
	assert_int_equal(read(fd, &read_back, 8), 8);
	assert_int_equal(read_back, 1);
	close(fd);
	assert_int_equal(ask_reach(&a, LID_B, b.data_number + 1, &m),
			 -EHOSTUNREACH);
	end_sharer(&a);
	end_sharer(&b);
}

/* Programs can read the number of changes, and cannot write it. */
static void the_page_of_changes_is_for_reading(void **state)
{
	struct sharer a = share_at("A");

	assert_true(mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, a.page,
			 0) == MAP_FAILED);
	assert_int_equal(ftruncate(a.page, 0), -1);
	assert_true(fcntl(a.page, F_GET_SEALS) & F_SEAL_SHRINK);
	end_sharer(&a);
}

static void a_program_that_does_not_share_learns_nothing(void **state)
{
	struct sharer a = join_at("A"), b = share_at("B");
	struct fabric_proto m;
	int fd;

	assert_int_equal(ask_reach(&a, LID_B, b.data_number, &m), -EINVAL);
	assert_int_equal(ask_arena(&a, b.number, &m, &fd), -ESRCH);
	assert_int_equal(ask_reach(&b, LID_A1, a.data_number, &m),
			 -EHOSTUNREACH);
	end_sharer(&a);
	end_sharer(&b);
}

static void a_program_shares_only_what_is_its_own(void **state)
{
	struct sharer a = join_at("A");
	int ends[2];

	assert_int_equal(share_as(&a, -1, (uint32_t)getpid()), -EINVAL);
	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(share_as(&a, ends[1], (uint32_t)getpid()), -EINVAL);
	close(ends[0]);
	close(ends[1]);
	ends[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(share_as(&a, ends[0], (uint32_t)getppid()), -EINVAL);
	assert_int_equal(share_as(&a, ends[0], 0), -EINVAL);
	close(ends[0]);
	assert_int_equal(share_own(&a), 0);
	assert_int_equal(share_own(&a), -EBUSY);
	end_sharer(&a);
}

static void the_death_of_a_program_is_told(void **state)
{
	struct sharer a = share_at("A"), b = share_at("B");
	struct fabric_proto_news news;
	struct fabric_proto m;
	int fd;

	end_sharer(&b);
	assert_int_equal(recv(a.data, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.changes, DATA_DEATH);
	assert_int_equal(ask_arena(&a, b.number, &m, &fd), -ESRCH);
	assert_int_equal(ask_reach(&a, LID_B, b.data_number, &m),
			 -EHOSTUNREACH);
	assert_int_equal(ask_arena(&a, 0, &m, &fd), -ESRCH);
	assert_int_equal(ask_arena(&a, UINT32_MAX, &m, &fd), -ESRCH);
	end_sharer(&a);
}

/* Runs a program that shares its arena, and a child that keeps the program's
 * sockets open until `go` is closed.  Writes the program's number to `tells`.
 * With refused_watch, the first request to share must fail. */
static _Noreturn void run_parent(pid_t parent, int tells, int go)
{
	struct sharer s;
	char byte;

	test_begin_child(parent);
	s = join_at("B");
	if (refused_watch)
		assert_int_equal(share_own(&s), -ENOSPC);
	assert_int_equal(share_own(&s), 0);
	if (!fork())
		_exit(read(go, &byte, 1) != 0);
	if (write(tells, &s.number, sizeof(s.number)) < 0)
		_exit(1);
	for (;;)
		pause();
}

static void the_death_of_a_program_with_a_child_is_told(void **state)
{
	struct sharer a = share_at("A");
	struct pollfd wait = {.fd = a.data, .events = POLLIN};
	struct fabric_proto_news news;
	int tells[2], go[2], fd;
	uint32_t number = 0;
	struct fabric_proto m;
	pid_t parent = getpid(), program;

	assert_int_equal(pipe2(tells, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	program = fork();
	assert_true(program >= 0);
	if (!program) {
		close(go[1]);
		run_parent(parent, tells[1], go[0]);
	}
	assert_int_equal(read(tells[0], &number, sizeof(number)),
			 sizeof(number));
	kill(program, SIGKILL);
	assert_int_equal(waitpid(program, NULL, 0), program);
	assert_int_equal(poll(&wait, 1, TEST_WAIT_MS), 1);
	assert_int_equal(recv(a.data, &news, sizeof(news), 0), sizeof(news));
	assert_int_equal(news.changes, DATA_DEATH);
	assert_int_equal(ask_arena(&a, number, &m, &fd), -ESRCH);
	close_both(go[0], go[1]);
	close_both(tells[0], tells[1]);
	end_sharer(&a);
}

/* A program whose process could not be watched asks again. */
static void a_program_that_was_refused_once_is_watched(void **state)
{
	the_death_of_a_program_with_a_child_is_told(state);
}

static void a_fabric_without_the_option_lets_nobody_share(void **state)
{
	struct sharer a = join_at("A");
	struct fabric_proto m = {.kind = FABRIC_PROTO_CA};

	assert_int_equal(share_own(&a), -EOPNOTSUPP);
	assert_int_equal(ask_fabric(a.fabric, &m, NULL), 0);
	assert_int_equal(m.number, 0);
	end_sharer(&a);
}

int main(void)
{
#define DIRECT(f) cmocka_unit_test_setup_teardown(f, set_up, stop_server)
	const struct CMUnitTest tests[] = {
		DIRECT(a_program_finds_the_arena_of_its_peer),
		DIRECT(the_page_of_changes_is_for_reading),
		DIRECT(a_program_that_does_not_share_learns_nothing),
		DIRECT(a_program_shares_only_what_is_its_own),
		DIRECT(the_death_of_a_program_is_told),
		DIRECT(the_death_of_a_program_with_a_child_is_told),
		cmocka_unit_test_setup_teardown(
			a_program_that_was_refused_once_is_watched,
			set_up_refusal, stop_refusal),
		cmocka_unit_test_setup_teardown(
			a_fabric_without_the_option_lets_nobody_share,
			set_up_without, stop_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
