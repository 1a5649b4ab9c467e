/* SPDX-License-Identifier: BSD-2-Clause */
/* hdr/sa: questions to the subnet administration, and their answers. */
#include "test.h"

#include "hdr/bytes.h"
#include "hdr/sa.h"
#include "sa_answer.h"

static const struct sa_member member = {
	.mgid = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [15] = 1},
	.port_gid = {0xfe, 0x80, [15] = 7},
	.qkey = 0x0b1b,
	.flow_label = 0xabcde,
	.mlid = 0xc003,
	.pkey = 0xffff,
	.mtu = 4,
	.rate = 3,
	.sl = 5,
	.traffic_class = 6,
	.hop_limit = 7,
	.join_state = SA_JOIN_FULL,
};

static const struct sa_path path = {.dgid = {0xfe, 0x80, [15] = 1},
				    .sgid = {0xfe, 0x80, [15] = 2},
				    .pkey = 0x8001};

static void a_join_that_may_make_a_group_names_its_fields(void **state)
{
	struct sa_member no_limits = member;
	uint8_t mad[MAD_BYTES];
	struct sa_answer a;

	sa_write_join(mad, 0x1234, &member, false);
	assert_int_equal(bytes_get64(mad + SA_AT_MASK), 0x10083);
	sa_write_join(mad, 0x1234, &member, true);
	assert_int_equal(bytes_get64(mad + SA_AT_MASK), 0x173f7);
	assert_int_equal(mad[SA_AT_METHOD], 2);
	no_limits.mtu = 0;
	sa_write_join(mad, 0x1234, &no_limits, true);
	assert_int_equal(bytes_get64(mad + SA_AT_MASK), 0x130c7);
	sa_write_join(mad, 0x1234, &member, true);
	/* an answer has the fields at the same places */
	mad[SA_AT_METHOD] = 0x81;
	bytes_put16(mad + SA_AT_RECORD + 36, member.mlid);
	assert_true(sa_read(mad, sizeof(mad), &a));
	assert_int_equal(a.kind, SA_MEMBER);
	assert_int_equal(a.id, 0x1234);
	assert_int_equal(a.status, 0);
	assert_memory_equal(&a.member, &member, sizeof(member));
}

static void a_leave_names_group_port_and_state(void **state)
{
	uint8_t mad[MAD_BYTES];
	struct sa_answer a;

	sa_write_leave(mad, 9, &member);
	assert_int_equal(bytes_get64(mad + SA_AT_MASK), 0x10003);
	assert_int_equal(mad[SA_AT_METHOD], 0x15);
	assert_false(sa_read(mad, sizeof(mad), &a) && a.kind == SA_LEFT);
	mad[SA_AT_METHOD] = 0x95;
	assert_true(sa_read(mad, sizeof(mad), &a));
	assert_int_equal(a.kind, SA_LEFT);
	assert_int_equal(a.id, 9);
}

static void a_path_is_read(void **state)
{
	uint8_t mad[MAD_BYTES];
	struct sa_answer a;

	sa_write_path(mad, 5, &path, SA_PATH_PKEY);
	assert_int_equal(bytes_get64(mad + SA_AT_MASK), 0x380c);
	assert_int_equal(mad[SA_AT_METHOD], 1);
	assert_int_equal(sa_id(mad), 5);
	sa_answer_path(mad, 0x21, 0x22, 4);
	sa_answer(mad, 0);
	bytes_put32(mad + SA_AT_RECORD + 44, 0x0abcde40);
	mad[SA_AT_RECORD + 53] = 0xf3;
	mad[SA_AT_RECORD + 55] = 0x87;
	mad[SA_AT_RECORD + 56] = 0x8c;
	assert_true(sa_read(mad, sizeof(mad), &a));
	assert_int_equal(a.kind, SA_PATH);
	assert_int_equal(a.path.dlid, 0x21);
	assert_int_equal(a.path.slid, 0x22);
	assert_int_equal(a.path.flow_label, 0xabcde);
	assert_int_equal(a.path.hop_limit, 0x40);
	assert_int_equal(a.path.sl, 3);
	assert_int_equal(a.path.mtu, 4);
	assert_int_equal(a.path.rate, 7);
	assert_int_equal(a.path.life_time, 12);
	assert_memory_equal(a.path.dgid, path.dgid, 16);
	assert_memory_equal(a.path.sgid, path.sgid, 16);
}

static void a_path_is_asked_for_by_the_fields_given(void **state)
{
	static const struct {
		uint32_t fields;
		int at;
		uint8_t value;
	} rows[] = {{SA_PATH_SERVICE, 7, 0x77},
		    {SA_PATH_TRAFFIC_CLASS, 48, 0x24},
		    {SA_PATH_PKEY, 50, 0x80},
		    {SA_PATH_SL, 53, 3}};
	struct sa_path asked = path;
	uint8_t mad[MAD_BYTES];

	asked.service_id = 0x1122334455667777;
	asked.traffic_class = 0x24;
	asked.sl = 0xf3;
	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		sa_write_path(mad, 1, &asked, rows[i].fields);
		assert_int_equal(bytes_get64(mad + SA_AT_MASK),
				 0x180c | rows[i].fields);
		assert_int_equal(mad[SA_AT_RECORD + 49], 0x81);
		for (size_t k = 0; k < TEST_COUNT(rows); k++)
			assert_int_equal(mad[SA_AT_RECORD + rows[k].at],
					 k == i ? rows[k].value : 0);
	}
}

static void impossible_values_are_refused(void **state)
{
	static const struct {
		int at;
		uint16_t value;
	} rows[] = {{0, 0xfe80},
		    {36, 0x0003},
		    {36, 0xffff},
		    {38, 0x8001},
		    {38, 0x8601}};
	static const uint16_t lids[] = {0, 0xc000, 0xffff};
	uint8_t mad[MAD_BYTES];
	struct sa_answer a;

	for (size_t i = 0; i < TEST_COUNT(rows); i++) {
		sa_write_join(mad, 1, &member, true);
		mad[SA_AT_METHOD] = 0x81;
		bytes_put16(mad + SA_AT_RECORD + 36, member.mlid);
		bytes_put16(mad + SA_AT_RECORD + rows[i].at, rows[i].value);
		assert_false(sa_read(mad, sizeof(mad), &a));
		/* with an error the values have no meaning */
		bytes_put16(mad + SA_AT_STATUS, 0x0200);
		assert_true(sa_read(mad, sizeof(mad), &a));
		assert_int_equal(a.status, 0x0200);
	}
	for (size_t i = 0; i < TEST_COUNT(lids); i++) {
		sa_write_path(mad, 1, &path, 0);
		sa_answer(mad, 0);
		sa_answer_path(mad, lids[i], 1, 4);
		assert_false(sa_read(mad, sizeof(mad), &a));
		sa_answer_path(mad, 1, lids[i], 4);
		assert_false(sa_read(mad, sizeof(mad), &a));
		sa_answer_path(mad, 1, 1, 4);
		assert_true(sa_read(mad, sizeof(mad), &a));
	}
}

static void other_datagrams_are_refused(void **state)
{
	uint8_t mad[MAD_BYTES];
	struct sa_answer a;

	sa_write_path(mad, 1, &path, 0);
	assert_false(sa_read(mad, sizeof(mad), &a)); /* a question */
	sa_answer(mad, 0);
	sa_answer_path(mad, 1, 2, 4);
	assert_true(sa_read(mad, sizeof(mad), &a));
	for (size_t n = 0; n < sizeof(mad); n++)
		assert_false(sa_read(mad, n, &a));
	mad[1] = 4; /* the class */
	assert_false(sa_read(mad, sizeof(mad), &a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_join_that_may_make_a_group_names_its_fields),
		cmocka_unit_test(a_leave_names_group_port_and_state),
		cmocka_unit_test(a_path_is_read),
		cmocka_unit_test(a_path_is_asked_for_by_the_fields_given),
		cmocka_unit_test(impossible_values_are_refused),
		cmocka_unit_test(other_datagrams_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
