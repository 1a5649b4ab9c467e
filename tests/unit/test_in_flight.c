/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors in flight: a broker or a client that may have no more of them
 * works without them or says which limit is reached. */
#include "low_limits.h"

#include "broker/answer.h"
#include "broker/fd_store.h"
#include "broker/inside.h"

#include <sys/eventfd.h>

static bool shows_arena(void)
{
	struct client_want want = silent;
	const char *why = "";
	struct client c;
	bool shows;

	want.arena_fd = memfd_create("arena", 0);
	want.peer_wake_fd = eventfd(0, EFD_CLOEXEC);
	if (client_open(&c, &want, &why))
		fail_msg("%s", why);
	shows = !c.hides_arena;
	client_close(&c);
	return shows;
}

static void open_under_a_hard_limit(void)
{
	leave_in_flight();
	limit_files(FEW, FEW);
	assert_false(shows_arena());
}

static void open_under_a_soft_limit(void)
{
	struct rlimit files;

	leave_in_flight();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	limit_files(FEW, files.rlim_max);
	assert_true(shows_arena());
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(files.rlim_cur, FEW);
}

/* A thread that serves as the broker has the soft limit of its program. */
static void fill_store_under_a_soft_limit(void)
{
	struct rlimit files;
	struct fd_store s;

	leave_in_flight();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	limit_files(UNDER_WAY / 2, files.rlim_max);
	assert_int_equal(fd_store_new(&s), 0);
	assert_int_equal(fd_store_put(&s, 0, (int[]){0, -1, -1}), 0);
	fd_store_close(&s);
}

static void
a_user_at_the_limit_of_descriptors_in_flight_shares_no_arena(void **state)
{
	run_beside_broker(open_under_a_hard_limit);
}

static void a_soft_limit_does_not_bound_descriptors_in_flight(void **state)
{
	run_beside_broker(open_under_a_soft_limit);
	run_in_child(fill_store_under_a_soft_limit);
}

/* Calls client_turn, at least once, until the client has a broker, or until
 * c->err, the reason why it has none, is `err`. */
static void turn_until(struct client *c, int err)
{
	struct client_news news;

	do
		wait_turn(c, &news);
	while (c->state != CLIENT_UP && c->err != err);
}

/* The client cannot send its arena to the first broker.  The next broker gets
 * the arena when fewer descriptors are in flight.  A client that has a class,
 * and whose hello fails, is told of the hard limit. */
static void meet_the_limit_and_a_successor(void)
{
	struct client_want want = silent;
	struct client first, c;
	int waiting = leave_in_flight();
	const char *why = "";

	open_or_fail(&first);
	want.arena_fd = memfd_create("arena", 0);
	want.peer_wake_fd = eventfd(0, EFD_CLOEXEC);
	limit_files(HARD / 2, HARD);
	if (client_open(&c, &want, &why))
		fail_msg("%s", why);
	assert_true(c.hides_arena);
	client_close(&first);
	end_broker(broker_of(&c));
	do
		turn_until(&c, -ETOOMANYREFS);
	while (c.err != -ETOOMANYREFS);
	assert_non_null(strstr(c.reason, "limit on open files, 990, allows"));
	close(waiting);
	while (c.state != CLIENT_UP)
		turn_until(&c, 0);
	assert_false(c.hides_arena);
	end_broker(broker_of(&c));
	client_close(&c);
}

static void an_arena_is_hidden_from_one_broker_alone(void **state)
{
	run_in_child(meet_the_limit_and_a_successor);
}

/* A client that asks for the page of a process of its own user gets an answer,
 * even if the broker's user may have no further descriptor in flight. */
static void answer_about_a_page(void)
{
	struct server *s = calloc(1, sizeof(*s));
	struct conn c = {.user = geteuid()};
	struct proto question = {.kind = PROTO_PAGE, .serial = 7}, m = {0};
	int pair[2], fds[PROTO_FDS];

	assert_non_null(s);
	reuseport_group_init(&s->group, true);
	steer_draw(&s->group.key, 1);
	s->group.count = 2;
	s->group.member[1] =
		(struct reuseport_group_member){.page_fd = shared_page_new(),
						.use = REUSEPORT_OWNED,
						.user = geteuid()};
	question.value = steer_class_at(&s->group.key, 1);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	c.fd = pair[0];
	leave_in_flight();
	limit_files(FEW, FEW);
	answer_page(s, &c, &question);
	assert_int_equal(proto_receive(pair[1], &m, fds), 0);
	assert_int_equal(m.kind, PROTO_PAGE_IS);
	assert_int_equal(m.serial, question.serial);
	assert_int_equal(m.value, question.value);
	assert_int_equal(m.brings, 0);
}

static void a_page_that_cannot_be_sent_is_answered_all_the_same(void **state)
{
	run_in_child(answer_about_a_page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_user_at_the_limit_of_descriptors_in_flight_shares_no_arena),
		cmocka_unit_test(
			a_soft_limit_does_not_bound_descriptors_in_flight),
		cmocka_unit_test(an_arena_is_hidden_from_one_broker_alone),
		cmocka_unit_test(
			a_page_that_cannot_be_sent_is_answered_all_the_same),
	};

	return cmocka_run_group_tests(tests, enter_namespace, NULL);
}
