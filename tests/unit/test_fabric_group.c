/* SPDX-License-Identifier: BSD-2-Clause */
/* tools/fabric_group: a port joins a multicast group for its programs, and
 * leaves the group after the last of them. */
#include "test.h"

#include <errno.h>

#include "hdr/bytes.h"
#include "sa_answer.h"
#include "tools/fabric_group.h"

enum {
	QKEY = 0x0b1b,
	MTU = 4,
	MLID = 0xc001,
	ANSWERS = 8,
};

static const uint8_t port_gid[16] = {0xfe, 0x80, [15] = 1};
static const uint8_t mgid[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 9};
static const uint8_t no_gid[16];

/* The calls that the sink got. */
static struct {
	int questions;
	uint8_t mad[MAD_BYTES]; /* of the last one */
	int ask_err;		/* the result of take_question */
	bool is_silent;		/* take_answer stores nothing */
	int answers;
	struct {
		void *owner;
		uint32_t serial;
		int err;
		struct sa_member member;
	} all[ANSWERS];
	int lost;
	uint32_t lost_number; /* of the last membership lost */
	void *lost_by;
} got;

static struct fabric_groups groups;
static uint32_t last_id;  /* of a question */
static int first, second; /* two programs */

static int take_question(void *user, const uint8_t gid[16],
			 const uint8_t mad[MAD_BYTES])
{
	assert_ptr_equal(user, &got);
	assert_memory_equal(gid, port_gid, 16);
	got.questions++;
	memcpy(got.mad, mad, MAD_BYTES);
	return got.ask_err;
}

static void take_answer(void *user, void *owner, uint32_t serial, int err,
			const struct sa_member *m)
{
	if (got.is_silent)
		return;
	assert_true(got.answers < ANSWERS);
	got.all[got.answers].owner = owner;
	got.all[got.answers].serial = serial;
	got.all[got.answers].err = err;
	got.all[got.answers].member = *m;
	got.answers++;
}

static void take_loss(void *user, void *owner, uint32_t number)
{
	got.lost++;
	got.lost_number = number;
	got.lost_by = owner;
}

static const struct fabric_group_sink sink = {take_question, take_answer,
					      take_loss};

static int begin_groups(void **state)
{
	memset(&got, 0, sizeof(got));
	fabric_group_init(&groups, &sink, &got, &last_id);
	return 0;
}

static int end_groups(void **state)
{
	fabric_group_free(&groups);
	return groups.member_count || groups.group_count;
}

static struct cmproto request_of(uint32_t number)
{
	struct cmproto m = {.serial = 100 + number,
			    .call_id = number,
			    .path.pkey = 0xffff,
			    .group = {.qkey = QKEY,
				      .mtu = MTU,
				      .rate = 3,
				      .hop_limit = 1,
				      .join_state = SA_JOIN_FULL}};

	memcpy(m.at.local, port_gid, 16);
	memcpy(m.at.peer, mgid, 16);
	return m;
}

static void join_as(void *owner, uint32_t number)
{
	const struct cmproto m = request_of(number);

	assert_int_equal(fabric_group_join(&groups, owner, &m), 0);
}

/* The administration answers the last question. */
static void answer_last(uint16_t status, uint32_t qkey)
{
	uint8_t mad[MAD_BYTES];
	uint32_t id = sa_id(got.mad);

	memcpy(mad, got.mad, MAD_BYTES);
	if (!sa_asks_leave(mad))
		sa_answer_group(mad, MLID, qkey, SA_EXACTLY | MTU);
	sa_answer(mad, status);
	assert_true(fabric_group_take(&groups, id, 0, mad, MAD_BYTES));
	/* nobody waits for a second answer */
	assert_false(fabric_group_take(&groups, id, 0, mad, MAD_BYTES));
}

static void assert_answers(int count, int err)
{
	assert_int_equal(got.answers, count);
	assert_int_equal(got.all[count - 1].err, err);
}

static void a_port_joins_for_the_first_and_leaves_after_the_last(void **state)
{
	join_as(&first, 1);
	join_as(&second, 1);
	assert_int_equal(got.questions, 1);
	assert_false(sa_asks_leave(got.mad));
	assert_true(fabric_group_is_busy(&groups));
	assert_int_equal(got.answers, 0);
	answer_last(0, QKEY);
	assert_answers(2, 0);
	assert_ptr_equal(got.all[0].owner, &first);
	assert_ptr_equal(got.all[1].owner, &second);
	assert_int_equal(got.all[1].serial, 101);
	assert_int_equal(got.all[1].member.mlid, MLID);
	assert_int_equal(got.all[1].member.qkey, QKEY);
	/* a subnet manager may have forgotten the group */
	join_as(&first, 2);
	assert_int_equal(got.questions, 2);
	answer_last(0, QKEY);
	assert_answers(3, 0);
	fabric_group_leave(&groups, &first, 1);
	fabric_group_leave(&groups, &first, 7); /* no such membership */
	fabric_group_leave(&groups, &second, 1);
	assert_int_equal(got.questions, 2);
	fabric_group_leave(&groups, &first, 2);
	assert_int_equal(got.questions, 3);
	assert_true(sa_asks_leave(got.mad));
	assert_true(fabric_group_is_busy(&groups));
	answer_last(0, QKEY);
	assert_false(fabric_group_is_busy(&groups));
	assert_true(list_is_empty(&groups.all));
}

static void a_join_while_the_port_leaves_waits_for_the_leave(void **state)
{
	join_as(&first, 1);
	answer_last(0, QKEY);
	fabric_group_leave(&groups, &first, 1);
	join_as(&second, 3);
	assert_int_equal(got.questions, 2);
	answer_last(0, QKEY); /* to the leave */
	assert_int_equal(got.questions, 3);
	assert_false(sa_asks_leave(got.mad));
	answer_last(0, QKEY);
	assert_answers(2, 0);
	assert_ptr_equal(got.all[1].owner, &second);
	fabric_group_drop(&groups, &second);
	answer_last(0, QKEY);
}

static void a_program_that_ends_leaves(void **state)
{
	join_as(&first, 1);
	join_as(&first, 2);
	fabric_group_drop(&groups, &first);
	assert_int_equal(got.questions, 1); /* the join has no answer yet */
	answer_last(0, QKEY);
	assert_int_equal(got.answers, 0);
	assert_true(sa_asks_leave(got.mad));
	answer_last(0, QKEY);
	assert_true(list_is_empty(&groups.all));
}

static void a_program_may_leave_before_the_answer(void **state)
{
	join_as(&first, 1);
	fabric_group_leave(&groups, &first, 1);
	assert_answers(1, -ECANCELED);
	answer_last(0, QKEY);
	assert_true(sa_asks_leave(got.mad));
	answer_last(0, QKEY);
	assert_int_equal(got.answers, 1);
	assert_true(list_is_empty(&groups.all));
}

static void a_refused_join_has_a_reason(void **state)
{
	static const struct {
		uint16_t status;
		int err;
	} rows[] = {{SA_REQUEST_INVALID, -ECONNREFUSED},
		    {SA_NO_RECORDS, -ECONNREFUSED},
		    {0x0001, -EREMOTEIO}};
	uint8_t mad[MAD_BYTES] = {0};

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		join_as(&first, 1);
		answer_last(rows[i].status, QKEY);
		assert_answers((int)i + 1, rows[i].err);
		assert_true(list_is_empty(&groups.all));
	}
	join_as(&first, 1);
	assert_true(fabric_group_take(&groups, last_id, -ETIMEDOUT, mad,
				      MAD_BYTES));
	assert_answers(4, -ETIMEDOUT);
	got.ask_err = -ENETDOWN;
	join_as(&first, 1);
	assert_answers(5, -ENETDOWN);
	assert_true(list_is_empty(&groups.all));
	assert_int_equal(groups.member_count, 0);
}

static void a_refused_member_leaves_the_others_in(void **state)
{
	join_as(&first, 1);
	answer_last(0, QKEY);
	join_as(&second, 1);
	answer_last(SA_REQUEST_INVALID, QKEY);
	assert_answers(2, -ECONNREFUSED);
	assert_false(list_is_empty(&groups.all));
	/* the port still is a member, and leaves after the last program,
	 * although a join has failed meanwhile */
	join_as(&second, 2);
	fabric_group_leave(&groups, &first, 1);
	assert_int_equal(got.questions, 3);
	answer_last(SA_REQUEST_INVALID, QKEY);
	assert_answers(3, -ECONNREFUSED);
	assert_int_equal(got.questions, 4);
	assert_true(sa_asks_leave(got.mad));
	answer_last(0, QKEY);
	assert_true(list_is_empty(&groups.all));
}

static void an_answer_of_another_group_is_refused(void **state)
{
	join_as(&first, 1);
	got.mad[SA_AT_RECORD + 15]++;
	answer_last(0, QKEY);
	assert_answers(1, -ECONNREFUSED);
	join_as(&first, 1);
	got.mad[SA_AT_RECORD] = 0; /* no multicast GID */
	answer_last(0, QKEY);
	assert_answers(2, -ECONNREFUSED);
}

static void the_administration_may_choose_a_gid(void **state)
{
	struct cmproto m = request_of(1);

	memcpy(m.at.peer, no_gid, 16);
	assert_int_equal(fabric_group_join(&groups, &first, &m), 0);
	m = request_of(2);
	memcpy(m.at.peer, no_gid, 16);
	/* each request without an MGID makes a group of its own */
	assert_int_equal(fabric_group_join(&groups, &first, &m), 0);
	assert_int_equal(got.questions, 2);
	memcpy(got.mad + SA_AT_RECORD, mgid, 16);
	answer_last(0, QKEY);
	assert_answers(1, 0);
	/* the question that was answered is that of the second request */
	assert_int_equal(got.all[0].serial, 102);
	assert_memory_equal(got.all[0].member.mgid, mgid, 16);
	fabric_group_leave(&groups, &first, 2);
	assert_int_equal(got.questions, 3);
	assert_true(sa_asks_leave(got.mad));
	assert_memory_equal(got.mad + SA_AT_RECORD, mgid, 16);
}

static void an_interface_leaves_a_shared_group(void **state)
{
	struct cmproto m = request_of(1);

	m.group.is_shared = 1;
	assert_int_equal(fabric_group_join(&groups, &first, &m), 0);
	answer_last(0, QKEY);
	fabric_group_leave(&groups, &first, 1);
	assert_int_equal(got.questions, 1);
	assert_true(list_is_empty(&groups.all));
}

static void a_sender_is_another_member_than_a_full_one(void **state)
{
	struct cmproto m = request_of(2);

	join_as(&first, 1);
	answer_last(0, QKEY);
	m.group.join_state = SA_JOIN_FULL_SENDER;
	assert_int_equal(fabric_group_join(&groups, &first, &m), 0);
	assert_int_equal(got.questions, 2);
	/* The administration answers with all states of the port. */
	got.mad[SA_AT_RECORD + 48] |= SA_JOIN_FULL;
	answer_last(0, QKEY);
	assert_answers(2, 0);
	assert_int_equal(got.all[1].member.join_state, SA_JOIN_FULL_SENDER);
	fabric_group_leave(&groups, &first, 2);
	assert_true(sa_asks_leave(got.mad));
	/* The leave names this state alone.  The byte has Scope in its upper
	 * four bits, and JoinState in its lower four (IBTA 15.2.5.17). */
	assert_int_equal(got.mad[SA_AT_RECORD + 48] & 15, SA_JOIN_FULL_SENDER);
}

/* Returns whether r is the group that the tests join. */
static bool is_first(const void *arg, const struct sa_member *r)
{
	assert_ptr_equal(arg, &got);
	return !memcmp(r->mgid, mgid, 16);
}

static bool is_none(const void *arg, const struct sa_member *r)
{
	return false;
}

static void lose_group(void)
{
	fabric_group_lose(&groups, is_none, &got);
	fabric_group_lose(&groups, is_first, &got);
}

static void programs_are_told_of_a_lost_group(void **state)
{
	join_as(&first, 1);
	join_as(&second, 3);
	answer_last(0, QKEY);
	lose_group();
	assert_int_equal(got.lost, 2);
	assert_int_equal(got.lost_number, 3);
	assert_ptr_equal(got.lost_by, &second);
	/* the administration is asked for nothing, also when the programs leave
	 */
	fabric_group_leave(&groups, &first, 1);
	fabric_group_drop(&groups, &second);
	assert_int_equal(got.questions, 1);
	assert_true(list_is_empty(&groups.all));
	join_as(&first, 2);
	assert_int_equal(got.questions, 2);
	answer_last(0, QKEY);
	assert_answers(3, 0);
}

static void a_join_that_waits_is_asked_for_again(void **state)
{
	join_as(&first, 1);
	answer_last(0, QKEY);
	join_as(&second, 2);
	lose_group();
	assert_int_equal(got.lost, 1);
	assert_ptr_equal(got.lost_by, &first);
	assert_int_equal(got.questions, 2);
	answer_last(0, QKEY); /* the answer may be from before the loss */
	assert_int_equal(got.answers, 1);
	assert_int_equal(got.questions, 3);
	assert_false(sa_asks_leave(got.mad));
	answer_last(0, QKEY);
	assert_answers(2, 0);
	assert_ptr_equal(got.all[1].owner, &second);
}

static void a_join_that_nobody_waits_for_is_undone(void **state)
{
	join_as(&first, 1);
	lose_group();
	fabric_group_leave(&groups, &first, 1);
	assert_answers(1, -ECANCELED);
	answer_last(0, QKEY);
	assert_true(sa_asks_leave(got.mad));
	answer_last(0, QKEY);
	assert_true(list_is_empty(&groups.all));
	assert_int_equal(got.lost, 0);
}

static void a_join_that_fails_after_a_loss_is_refused(void **state)
{
	uint8_t mad[MAD_BYTES] = {0};

	join_as(&first, 1);
	lose_group();
	assert_true(fabric_group_take(&groups, last_id, -ETIMEDOUT, mad,
				      MAD_BYTES));
	assert_answers(1, -ETIMEDOUT);
	assert_int_equal(got.questions, 1);
	assert_true(list_is_empty(&groups.all));
}

static void nonsense_of_a_program_is_refused(void **state)
{
	struct cmproto m = request_of(1);

	m.group.join_state = SA_JOIN_FULL | SA_JOIN_FULL_SENDER;
	assert_int_equal(fabric_group_join(&groups, &first, &m), -EINVAL);
	m = request_of(1);
	m.at.peer[0] = 0xfe;
	assert_int_equal(fabric_group_join(&groups, &first, &m), -EINVAL);
	m = request_of(1);
	m.path.pkey = 0;
	assert_int_equal(fabric_group_join(&groups, &first, &m), -EINVAL);
	join_as(&first, 1);
	m = request_of(2);
	m.group.qkey++;
	assert_int_equal(fabric_group_join(&groups, &second, &m), -EINVAL);
	m = request_of(2);
	m.path.pkey = 0x8005;
	assert_int_equal(fabric_group_join(&groups, &second, &m), -EINVAL);
	assert_int_equal(got.questions, 1);
}

static void a_program_has_a_bound_of_memberships(void **state)
{
	struct cmproto m = request_of(1);

	for (uint32_t i = 0; i < FABRIC_GROUP_OWN; i++)
		join_as(&first, i);
	assert_int_equal(fabric_group_join(&groups, &first, &m), -ENOBUFS);
	join_as(&second, 1);
	fabric_group_leave(&groups, &first, 5);
	assert_int_equal(fabric_group_join(&groups, &first, &m), 0);
	assert_int_equal(got.questions, 1);
}

static void a_host_has_a_bound_of_memberships(void **state)
{
	static char programs[FABRIC_GROUP_MEMBERS / FABRIC_GROUP_OWN];
	struct cmproto m = request_of(1);

	for (uint32_t i = 0; i < FABRIC_GROUP_MEMBERS; i++)
		join_as(&programs[i / FABRIC_GROUP_OWN], i);
	assert_int_equal(fabric_group_join(&groups, &first, &m), -ENOBUFS);
}

/* Many programs join one group each, and end before the administration answers.
 */
static void a_host_has_a_bound_of_groups(void **state)
{
	struct cmproto m = request_of(1);

	got.is_silent = true;
	for (uint32_t i = 0; i <= FABRIC_GROUP_MEMBERS; i++) {
		m.at.peer[14] = (uint8_t)(i >> 8);
		m.at.peer[15] = (uint8_t)i;
		assert_int_equal(fabric_group_join(&groups, &first, &m),
				 i < FABRIC_GROUP_MEMBERS ? 0 : -ENOBUFS);
		fabric_group_drop(&groups, &first);
	}
	assert_int_equal(groups.group_count, FABRIC_GROUP_MEMBERS);
}

/* A program joins and leaves one group after the other, and does not wait for
 * the administration. */
static void a_program_has_a_bound_of_open_questions(void **state)
{
	struct cmproto m = request_of(1);
	uint32_t joins = 0;

	got.is_silent = true;
	for (int err = 0; !err; joins += !err) {
		m.at.peer[14] = (uint8_t)(joins >> 8);
		m.at.peer[15] = (uint8_t)joins;
		err = fabric_group_join(&groups, &first, &m);
		fabric_group_leave(&groups, &first, 1);
		assert_true(joins <= FABRIC_GROUP_OWN);
	}
	assert_int_equal(joins, FABRIC_GROUP_OWN);
	join_as(&second, 1);
}

/* The table of questions is full when the last member leaves. */
static void a_port_leaves_later_if_it_cannot_ask_at_once(void **state)
{
	struct cmproto m = request_of(2);

	join_as(&first, 1);
	answer_last(0, QKEY);
	got.ask_err = -ENOBUFS;
	fabric_group_leave(&groups, &first, 1);
	assert_int_equal(groups.group_count, 1);
	got.ask_err = 0;
	m.at.peer[15]++;
	assert_int_equal(fabric_group_join(&groups, &second, &m), 0);
	answer_last(0, QKEY);
	assert_true(sa_asks_leave(got.mad));
	answer_last(0, QKEY);
	assert_int_equal(groups.group_count, 1);
}

#define GROUP_TEST(f)                                                          \
	cmocka_unit_test_setup_teardown(f, begin_groups, end_groups)

int main(void)
{
	const struct CMUnitTest tests[] = {
		GROUP_TEST(
			a_port_joins_for_the_first_and_leaves_after_the_last),
		GROUP_TEST(a_join_while_the_port_leaves_waits_for_the_leave),
		GROUP_TEST(a_program_that_ends_leaves),
		GROUP_TEST(a_program_may_leave_before_the_answer),
		GROUP_TEST(a_refused_join_has_a_reason),
		GROUP_TEST(a_refused_member_leaves_the_others_in),
		GROUP_TEST(an_answer_of_another_group_is_refused),
		GROUP_TEST(the_administration_may_choose_a_gid),
		GROUP_TEST(an_interface_leaves_a_shared_group),
		GROUP_TEST(a_sender_is_another_member_than_a_full_one),
		GROUP_TEST(programs_are_told_of_a_lost_group),
		GROUP_TEST(a_join_that_waits_is_asked_for_again),
		GROUP_TEST(a_join_that_nobody_waits_for_is_undone),
		GROUP_TEST(a_join_that_fails_after_a_loss_is_refused),
		GROUP_TEST(nonsense_of_a_program_is_refused),
		GROUP_TEST(a_program_has_a_bound_of_memberships),
		GROUP_TEST(a_host_has_a_bound_of_memberships),
		GROUP_TEST(a_host_has_a_bound_of_groups),
		GROUP_TEST(a_program_has_a_bound_of_open_questions),
		GROUP_TEST(a_port_leaves_later_if_it_cannot_ask_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
